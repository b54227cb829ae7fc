"""The operators that train, one per engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from airflow.sdk.bases.resumablejobmixin import ResumableJobMixin

from ganger.links import MLflowRunLink
from ganger.operators.base import PipelineSource, StepOperator
from training.errors import spec_error

if TYPE_CHECKING:
    from airflow.sdk import Context

    from training.steps import StepContext

#: Key of Airflow's task state store: the job that this task instance has under way. Kept from try to try, removed once
#: the task instance has succeeded.
JOB_KEY = "ganger_job"


def forget_job(context: Any) -> None:
    """Remove the job from the task state store: a success callback, so that a clear of the task means "train again".

    Airflow calls it when it has written down the success. A process that dies before leaves the key, and the next try
    finds the result.
    """
    store = context.get("task_state_store")
    if store is not None:
        store.delete(JOB_KEY)


class TrainingOperator(ResumableJobMixin, StepOperator):
    """Trains with one supervised gang of processes. Use the subclass for the engine of the spec.

    A try that comes while the gang runs joins it; one that comes after it has ended well takes its result; after a
    failure it resumes from the newest checkpoint, in the same MLflow run. When the task instance had succeeded and was
    cleared, it trains anew.

    Args:
        pipeline: As for every step.
        durable: Whether tries know of each other by Airflow's task state store. Without it a succeeded training is kept
            even when the task is cleared.

    Raises:
        SpecError: The spec is for another engine, or wrong.
    """

    step = "train"
    external_id_key = JOB_KEY
    engine: ClassVar[str]
    """What `train.engine` must be."""
    operator_extra_links = (MLflowRunLink(),)
    ui_color = "#cfe8d5"

    def __init__(self, *, pipeline: PipelineSource, durable: bool = True, **kwargs: Any) -> None:
        super().__init__(pipeline=pipeline, durable=durable, **kwargs)
        self.on_success_callback = [*self.on_success_callback, forget_job]
        self._offset: int | None = None
        engine = self.pipeline.spec.train.engine
        if engine != self.engine:
            raise spec_error(
                "train.engine",
                f"{type(self).__name__} needs engine {self.engine}. Received: {engine}.",
                f"Use {TRAINING_OPERATORS[engine].__name__}.",
            )

    def run_step(self, ctx: StepContext, context: Context) -> dict[str, Any]:
        """Train, join the gang that trains, or take the result of the one that has."""
        self._offset = None
        if not self.durable or context.get("task_state_store") is None:
            return super().run_step(ctx, context)
        result: dict[str, Any] = self.execute_resumable(context)
        return result

    def submit_job(self, context: Context) -> str:
        """Start the gang and return the id of its job, which is known, and stored, before it is started."""
        from training import steps

        ctx, store = self._opened, context["task_state_store"]
        if store.get(JOB_KEY) is None:
            steps.set_training_aside(ctx)
        job_id = ctx.run.job(self.step, ctx.map_index).job_id
        store.set(JOB_KEY, job_id)
        self._offset = steps.start_training(ctx)
        return job_id

    def get_job_status(self, external_id: Any, context: Context) -> str:
        """Return where the job stands: a `training.run.standing.Standing`."""
        from training import steps

        return steps.read_training_standing(self._opened)

    def is_job_active(self, status: str) -> bool:
        """Whether the job is to be joined. One that is being cancelled is not: it is waited for, then started again."""
        return status == "active"

    def is_job_succeeded(self, status: str) -> bool:
        """Whether the job has a result to be taken."""
        return status == "succeeded"

    def poll_until_complete(self, external_id: Any, context: Context) -> dict[str, Any]:  # type: ignore[override]
        """Follow the gang to its end; the mixin returns what this returns to a try that has joined."""
        from training import steps

        ctx = self._opened
        offset = steps.join_training(ctx) if self._offset is None else self._offset
        steps.follow_training(ctx, offset)
        return steps.read_training(ctx)

    def get_job_result(self, external_id: Any, context: Context) -> dict[str, Any]:
        """Return what came of the training."""
        from training import steps

        return steps.read_training(self._opened)

    @property
    def _opened(self) -> StepContext:
        assert self._running is not None
        return self._running


class TensorFlowTrainingOperator(TrainingOperator):
    """Trains a Keras model with TensorFlow."""

    engine = "tensorflow"


class HorovodTrainingOperator(TrainingOperator):
    """Trains a Keras or Gluon model with Horovod."""

    engine = "horovod"


class MXNetTrainingOperator(TrainingOperator):
    """Trains a Gluon model with MXNet."""

    engine = "mxnet"


#: Engine of a spec to the operator that trains it.
TRAINING_OPERATORS: dict[str, type[TrainingOperator]] = {
    operator.engine: operator
    for operator in (TensorFlowTrainingOperator, HorovodTrainingOperator, MXNetTrainingOperator)
}
