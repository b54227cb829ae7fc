"""Step `teardown_cluster`: end what is left, give the cluster back, close the MLflow run, and say what was found."""

from __future__ import annotations

import sys
from typing import Any

from training.plan.jobs import plan_single_job
from training.run.folder import JobFolder, RunFolder
from training.run.follow import stop
from training.run.job import JobResult, TrackingRef
from training.run.scratch import Scratch
from training.run.sweep import sweep
from training.steps.context import StepContext
from training.steps.job import run_job
from training.steps.provision import release_cluster

NAME = "teardown_cluster"


def teardown_cluster(ctx: StepContext, reason: str = NAME) -> dict[str, Any]:
    """End every job of the run, release its cluster and prove that no process is left. Safe to repeat.

    Args:
        ctx: The run.
        reason: What a job that still runs is told to have ended it.

    Returns:
        `stopped` (jobs that still ran), `ended` (pids of leftover processes), `released` (host to ranks).
    """
    jobs = [job for job in ctx.run.jobs() if job.path.name != NAME]
    stopped = [job.path.name for job in jobs if _stop_job(job, reason)]
    ended = [pid for job in jobs for pid in sweep(job.job_id, job_dir=job.path)]
    for problem in filter(None, [Scratch(job).remove() for job in jobs]):
        ctx.log(problem)
    allocation = release_cluster(ctx.run)
    if _is_tracking_open(ctx.run):
        _close_tracking(ctx)
    ctx.log(f"stopped: {', '.join(stopped) or 'nothing was running'}; leftover processes: {ended or 'none'}")
    return {"stopped": stopped, "ended": ended, "released": allocation.ranks if allocation else {}}


def _stop_job(job: JobFolder, reason: str) -> bool:
    if not job.job.exists() or job.result.exists():
        return False
    stop(job, reason)
    return True


def _is_tracking_open(run: RunFolder) -> bool:
    """Whether the MLflow run may still be RUNNING, or metrics wait on disk: its supervisor did not get to close it."""
    runs = (run, *run.earlier())
    return any(_is_job_open(each, each.job(name)) for each in runs for name in ("train", "evaluate"))


def _is_job_open(run: RunFolder, job: JobFolder) -> bool:
    result = JobResult.read(job.result)
    began = job.spool.exists() or (job.job.exists() and TrackingRef.read(run.tracking) is not None)
    return began and (result is None or not result.tracking_closed)


def _close_tracking(ctx: StepContext) -> None:
    result = JobResult.read(ctx.run.job("train").result)
    payload = {
        "task": "close_tracking",
        "run": str(ctx.run.path),
        "state": str(result.state) if result else "cancelled",
    }
    plan = plan_single_job(run_id=ctx.run.run_id, name=NAME, python=sys.executable, payload=payload, tracks=True)
    run_job(ctx, plan, again=True)
