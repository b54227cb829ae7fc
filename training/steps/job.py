"""Runs one job to its end for a step: start or re-attach, follow, turn the result into a value or an error."""

from __future__ import annotations

from training.plan.job import JobPlan
from training.run.follow import cancel, follow, log_size, raise_for, start_or_attach, stop
from training.run.job import JobResult
from training.steps.context import StepContext


def run_job(ctx: StepContext, plan: JobPlan, *, again: bool = False) -> JobResult:
    """Run the job of `plan` and return its result.

    Args:
        ctx: The run.
        plan: What to run.
        again: Run it even if it has succeeded before; else the result of then is returned.

    Raises:
        GangerError: The job failed or was cancelled; the class says whether a retry makes sense.
    """
    folder = ctx.run.job(plan.name, ctx.map_index)
    seen = log_size(folder)  # of earlier tries: they were told then
    limits = plan.limits.model_copy(update={"lease_s": ctx.lease_s})
    plan = plan.model_copy(update={"limits": limits})
    attached = start_or_attach(folder, plan, keep_succeeded=not again, on_line=ctx.log)
    if attached:
        ctx.log(f"{plan.name} is running already: following it.")
    result = follow(folder, on_line=ctx.log, offset=0 if attached else seen)
    for note in result.notes:
        ctx.log(f"note: {note}")
    raise_for(result)
    return result


def cancel_step(ctx: StepContext, step: str, reason: str) -> None:
    """End the job of `step`, if one runs, and wait until its processes are gone."""
    folder = ctx.run.job(step, ctx.map_index)
    if folder.job.exists() and not folder.result.exists():
        cancel(folder, reason)
        stop(folder, reason)
