"""What all step operators share: they call one function of `training.steps` and translate what it says."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.sdk import BaseOperator

from ganger.errors import RETRY_POLICY, report_failure, to_airflow
from ganger.form import apply_params
from ganger.xcom import check_xcom
from training.errors import GangerError
from training.run.folder import RunFolder, run_id_of
from training.spec.file import PipelineFile
from training.spec.loader import load_pipeline, pipeline_from_mapping

if TYPE_CHECKING:
    from airflow.sdk import Context, RetryPolicy

    from training.steps import StepContext

#: Airflow notices after `task_instance_heartbeat_timeout` (120 s in our airflow.cfg) that a task's process was killed,
#: and tries again a retry delay later. The gang must still be there then, so that the new try joins it.
LEASE_S = 240.0

PipelineSource = str | Path | Mapping[str, Any] | PipelineFile


class StepOperator(BaseOperator):
    """Runs one step of a pipeline.

    The step's processes belong to a detached supervisor, not to the task. The task follows them, and ends them when it
    is cancelled or exceeds its `execution_timeout`.

    Args:
        pipeline: A pipeline: the path of a YAML file (relative to the file that defines the DAG), a mapping, or what
            `load_pipeline` returned.
        refuse_unknown_params: Whether a DAG run with a parameter that is neither in the trigger form nor a field of the
            spec is refused. For DAGs whose form is wholly Ganger's.
        retry_policy: Which failures are retried while `retries` allows it; by default those that the next try may not
            meet. None: all.

    Raises:
        SpecError: The pipeline is wrong.
    """

    step: ClassVar[str]
    """Name of the function in `training.steps`, and of its job."""

    ui_color = "#e8f1f2"

    def __init__(
        self,
        *,
        pipeline: PipelineSource,
        refuse_unknown_params: bool = False,
        retry_policy: RetryPolicy | None = RETRY_POLICY,
        **kwargs: Any,
    ) -> None:
        super().__init__(retry_policy=retry_policy, **kwargs)
        dag = self.get_dag()
        self.pipeline = _read_pipeline(pipeline, Path(dag.fileloc).parent if dag else Path.cwd())
        self.refuse_unknown_params = refuse_unknown_params
        self.on_failure_callback = [*self.on_failure_callback, report_failure]
        self.on_retry_callback = [*self.on_retry_callback, report_failure]
        self._running: StepContext | None = None

    def execute(self, context: Context) -> dict[str, Any]:
        """Run the step and return its small JSON, the task's XCom.

        Raises:
            StepFailed: It failed, and a retry would too.
            StepInterrupted: It failed, and a retry makes sense.
        """
        try:
            self._running = self._open(context)
            values = self.run_step(self._running, context)
            return check_xcom(values, self._running.run.path / "xcom" / self.task_id)
        except GangerError as error:
            raise to_airflow(error) from None

    def run_step(self, ctx: StepContext, context: Context) -> dict[str, Any]:
        """Call the step's function."""
        # Imported when a task runs: parsing a DAG needs none of it.
        from training import steps

        function = getattr(steps, self.step)
        result: dict[str, Any] = function(ctx)
        return result

    def on_kill(self) -> None:
        """End the step's processes. Airflow calls this on SIGTERM and when `execution_timeout` has passed."""
        if self._running is not None:
            from training import steps

            steps.cancel_step(self._running, self.step, f"the Airflow task {self.task_id} was ended")

    def _open(self, context: Context) -> StepContext:
        from training.steps import StepContext
        from training.steps.framework import recognise_framework

        ti, dag_run = context["ti"], context["dag_run"]
        file = apply_params(self.pipeline, context["params"], refuse_unknown=self.refuse_unknown_params)
        return StepContext(
            file=recognise_framework(file),
            run=RunFolder.of(run_id_of(ti.dag_id, dag_run.run_id)),
            log=self.log.info,
            tags={"dag_id": ti.dag_id, "dag_run_id": dag_run.run_id, "try_number": str(ti.try_number)},
            map_index=-1 if ti.map_index is None else ti.map_index,
            try_number=ti.try_number,
            lease_s=LEASE_S,
        )


def _read_pipeline(source: PipelineSource, folder: Path) -> PipelineFile:
    if isinstance(source, PipelineFile):
        return source
    if isinstance(source, Mapping):
        return pipeline_from_mapping(dict(source), folder)
    return load_pipeline(folder / source)
