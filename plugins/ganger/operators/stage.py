"""The operator that brings up one stage of a pipeline, so that stages are tasks in their order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ganger.operators.base import PipelineSource, StepOperator
from ganger.stage_order import check_stage_tasks
from training.errors import spec_error

if TYPE_CHECKING:
    from airflow.sdk import Context

    from training.steps import StepContext


class PipelineStageOperator(StepOperator):
    """Brings up one stage of a pipeline, and succeeds once it serves; the task that trains has the stages compute.

    Put one for each stage in a row before the training: `stage_0 >> stage_1 >> train`. All of them live under the
    supervisor of the training: when one dies, the gang ends with its name first, and whoever waits for it fails.

    Args:
        pipeline: As for every step.
        stage: Number of the stage, from 0.

    Raises:
        SpecError: The pipeline has no such stage, or is wrong.
    """

    step = "train"
    ui_color = "#dfe3f5"

    def __init__(self, *, pipeline: PipelineSource, stage: int, **kwargs: Any) -> None:
        super().__init__(pipeline=pipeline, **kwargs)
        self.stage = stage
        spec = self.pipeline.spec
        if spec.train.strategy != "pipeline":
            raise spec_error(
                "train.strategy",
                f"must be pipeline for a {type(self).__name__}. Received: {spec.train.strategy}.",
                "Remove the tasks of stages.",
            )
        if not 0 <= stage < spec.workers:
            raise spec_error(
                "train.pipeline.stages",
                f"is {spec.workers}, so a stage must be one of 0 to {spec.workers - 1}. Received: stage {stage}.",
            )

    def run_step(self, ctx: StepContext, context: Context) -> dict[str, Any]:
        """Bring up the stage."""
        from training import steps

        dag = self.get_dag()
        if dag is not None:
            check_stage_tasks(dag, self.pipeline.spec)
        return steps.start_stage(ctx, self.stage)
