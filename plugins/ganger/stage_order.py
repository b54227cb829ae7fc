"""Whether the tasks of a DAG that bring stages up are all there, one after the other, and before the training (K31)."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from training.errors import spec_error

if TYPE_CHECKING:
    from airflow.sdk import DAG

    from training.spec.pipeline import PipelineSpec

_FIELD = "train.pipeline.stages"


def check_stage_tasks(dag: DAG, spec: PipelineSpec) -> None:
    """Check the tasks of `dag` for the stages of the pipeline `spec`. The first of them asks, before anything starts.

    Raises:
        SpecError: A stage has no task or two, or its task does not come after that of the stage before.
    """
    from ganger.operators.stage import PipelineStageOperator
    from ganger.operators.training import TrainingOperator

    own = [
        task for task in dag.tasks if isinstance(task, PipelineStageOperator) and task.pipeline.spec.name == spec.name
    ]
    stages = sorted(own, key=lambda task: task.stage)
    numbers = [task.stage for task in stages]
    if numbers != list(range(spec.workers)):
        raise spec_error(
            _FIELD,
            f"is {spec.workers}, so there must be a task for each stage from 0 to {spec.workers - 1}, one each. "
            f"Received: tasks for {', '.join(f'stage {number}' for number in numbers)}.",
        )
    trainings = [
        task for task in dag.tasks if isinstance(task, TrainingOperator) and task.pipeline.spec.name == spec.name
    ]
    for before, after in [*pairwise(stages), *((stages[-1], task) for task in trainings)]:
        if before.task_id not in after.get_flat_relative_ids(upstream=True):
            raise spec_error(
                _FIELD,
                f"must come up one after the other: {after.task_id} must come after {before.task_id}. "
                "Received: an order without that.",
                f"Write {before.task_id} >> {after.task_id}.",
            )
