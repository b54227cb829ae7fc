"""Runs one job for a step: starts it or joins it, follows it, turns its result into a value or an error."""

from __future__ import annotations

from training.plan.job import JobPlan
from training.run.folder import JobFolder, write_atomic
from training.run.follow import cancel, follow, log_size, raise_for, start_or_attach, stop
from training.run.job import JobResult, JobState, JobStatus
from training.run.standing import Standing, read_standing
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
    return follow_job(ctx, plan.name, offset=start_job(ctx, plan, again=again))


def start_job(ctx: StepContext, plan: JobPlan, *, again: bool = False) -> int:
    """Have the job of `plan` run, and return from where in its log to follow it: earlier tries were told before.

    Args:
        ctx: The run.
        plan: What to start, where no such job runs.
        again: Start it even if it has succeeded before.

    Raises:
        LaunchError: It cannot be started.
    """
    folder = ctx.run.job(plan.name, ctx.map_index)
    _claim(ctx, folder)
    _await_cancelled(ctx, folder)
    seen = log_size(folder)
    limits = plan.limits.model_copy(update={"lease_s": ctx.lease_s})
    plan = plan.model_copy(update={"limits": limits})
    if start_or_attach(folder, plan, keep_succeeded=not again, on_line=ctx.log):
        return join_job(ctx, plan.name)
    return seen


def claim_job(ctx: StepContext, name: str) -> None:
    """Become the follower of a job that runs: what an older try wants of it counts no more."""
    _claim(ctx, ctx.run.job(name, ctx.map_index))


def join_job(ctx: StepContext, name: str) -> int:
    """Become the follower of a job that runs, say how far it is, and return from where in its log to follow it."""
    folder = ctx.run.job(name, ctx.map_index)
    claim_job(ctx, name)
    ctx.log(f"{name} is running already: following it, {_say_where(JobStatus.read(folder.status))}. Its log so far:")
    return 0


def follow_job(ctx: StepContext, name: str, *, offset: int = 0) -> JobResult:
    """Follow a job from `offset` in its log to its end, and return its result.

    Raises:
        GangerError: The job failed or was cancelled; the class says whether a retry makes sense.
    """
    result = follow(ctx.run.job(name, ctx.map_index), on_line=ctx.log, offset=offset)
    for note in result.notes:
        ctx.log(f"note: {note}")
    raise_for(result)
    return result


def cancel_step(ctx: StepContext, step: str, reason: str) -> None:
    """End the job of `step`, if one runs and no later try has come to follow it, and wait until its processes are gone.

    Airflow may end a try that it took for dead when the next one has joined the gang already.
    """
    folder = ctx.run.job(step, ctx.map_index)
    if not folder.job.exists() or folder.result.exists():
        return
    newest = _read_follower(folder)
    if newest > ctx.try_number:
        ctx.log(f"{step} goes on: try {newest} follows it now.")
        return
    cancel(folder, reason)
    stop(folder, reason)


def _claim(ctx: StepContext, folder: JobFolder) -> None:
    write_atomic(folder.follower, str(ctx.try_number), durable=False)


def _say_where(status: JobStatus | None) -> str:
    if status is not None and status.state is JobState.QUEUED:
        return "still waiting for free slots"
    return f"at step {status.step}" if status is not None and status.step else "before its first step"


def _read_follower(folder: JobFolder) -> int:
    try:
        return int(folder.follower.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return 0


def _await_cancelled(ctx: StepContext, folder: JobFolder) -> None:
    """Let a job end whose end somebody wanted for an earlier try: this one shall run."""
    if read_standing(folder) is Standing.ENDING:
        ctx.log(f"{folder.job_id} is being cancelled: waiting for its end, then it is started again.")
        follow(folder)
