"""All steps in order in one process: what a DAG run does, without Airflow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from training.errors import GangerError
from training.steps.context import StepContext, open_run
from training.steps.evaluate import evaluate
from training.steps.job import cancel_step
from training.steps.machine import read_machine
from training.steps.prepare import prepare_data
from training.steps.provision import check_run, provision_cluster
from training.steps.register import register_model
from training.steps.teardown import teardown_cluster
from training.steps.train import train

Step = Callable[[StepContext], dict[str, Any]]
STEPS: dict[str, Step] = {
    "prepare_data": prepare_data,
    "provision_cluster": provision_cluster,
    "train": train,
    "evaluate": evaluate,
    "register_model": register_model,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineOutcome:
    """How a pipeline ended.

    Attributes:
        state: `succeeded`, `failed` or `cancelled`.
        values: Step to what it returned, for the steps that ended well.
        error: Why it did not succeed: an error of ours, or the `KeyboardInterrupt` of whoever waited.
    """

    state: str
    values: dict[str, dict[str, Any]] = field(default_factory=dict)
    error: GangerError | KeyboardInterrupt | None = None


def run_pipeline(
    ctx: StepContext, *, on_step: Callable[[str], None], approve: Callable[[], bool] = lambda: True
) -> PipelineOutcome:
    """Run every step of the pipeline; the teardown runs whatever happens.

    Args:
        ctx: The run.
        on_step: Called with the name of each step before it begins.
        approve: Asked before registering when the spec wants an approval.
    """
    check_run(ctx, read_machine())
    open_run(ctx)
    values: dict[str, dict[str, Any]] = {}
    error: GangerError | KeyboardInterrupt | None = None
    current = ""
    try:
        for current, step in STEPS.items():
            if current == "register_model" and _is_refused(ctx, approve):
                ctx.log("Not approved: the model is not registered.")
                continue
            on_step(current)
            values[current] = step(ctx)
    except GangerError as caught:
        error = caught
    except KeyboardInterrupt as caught:
        error = caught
        ctx.log("Interrupted: ending the gang.")
        cancel_step(ctx, current, "interrupted")
    except BaseException:
        teardown_cluster(ctx)
        raise
    on_step("teardown_cluster")
    values["teardown_cluster"] = teardown_cluster(ctx)
    return PipelineOutcome(state=_choose_state(error), values=values, error=error)


def _is_refused(ctx: StepContext, approve: Callable[[], bool]) -> bool:
    target = ctx.spec.registration
    return target is not None and target.approval and not approve()


def _choose_state(error: BaseException | None) -> str:
    if error is None:
        return "succeeded"
    return "cancelled" if isinstance(error, KeyboardInterrupt) else "failed"
