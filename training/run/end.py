"""Ends jobs from outside: asks, insists, and cleans up after a supervisor that died."""

from __future__ import annotations

import contextlib
import os
import signal
import time

from training.run.folder import JobFolder
from training.run.job import FailureHeadline, JobResult, JobState, JobStatus, SupervisorRef
from training.run.lock import JobLock, is_alive, is_supervised
from training.run.scratch import Scratch
from training.run.sweep import render_pids, sweep
from training.run.tail import read_last_lines

_LOG_LINES = 30
_POLL_S = 0.05


def renew_lease(folder: JobFolder) -> None:
    """Say that somebody still follows the job."""
    folder.path.mkdir(parents=True, exist_ok=True)
    folder.lease.touch()


def cancel(folder: JobFolder, reason: str) -> None:
    """Ask the job to end; returns at once."""
    folder.path.mkdir(parents=True, exist_ok=True)
    folder.cancel.write_text(reason)


def stop(folder: JobFolder, reason: str, wait_s: float = 60.0) -> JobResult | None:
    """End the job, by force if it has not ended after `wait_s` seconds, and return its result; None if it never ran.

    A job that is over is left as it is, and so is one that somebody starts anew meanwhile; then None is returned, too.
    """
    if not folder.job.exists():
        return None
    result = JobResult.read(folder.result)
    if result is not None:
        return result
    cancel(folder, reason)
    deadline = time.monotonic() + wait_s
    while is_supervised(folder) and time.monotonic() < deadline:
        if not folder.cancel.exists():  # whoever starts a job takes it away
            return None
        time.sleep(_POLL_S)
    if time.monotonic() >= deadline:
        _kill_supervisor(folder)
    return clean_up(folder, cancelled=reason)


def clean_up(folder: JobFolder, *, cancelled: str | None = None) -> JobResult | None:
    """End what a dead supervisor left, and write the result that it owes.

    Args:
        folder: The job.
        cancelled: Why the supervisor was ended, if that is what was wanted.

    Returns:
        The result; None where a supervisor lives after all.
    """
    lock = JobLock.acquire(folder)
    if lock is None:
        return None
    with lock:
        result = JobResult.read(folder.result)
        if result is None:
            result = _describe_death(folder, sweep(folder.job_id, job_dir=folder.path), cancelled)
            Scratch(folder).remove()
            result.write(folder.result)
        return result


def _kill_supervisor(folder: JobFolder) -> None:
    """Kill a supervisor that does not end; its ranks die with it."""
    ref = SupervisorRef.read(folder.supervisor)
    if ref is None or not is_alive(ref):
        return
    with contextlib.suppress(ProcessLookupError):
        os.kill(ref.pid, signal.SIGKILL)
    while is_alive(ref):
        time.sleep(_POLL_S)


def read_last_status(folder: JobFolder) -> JobStatus | None:
    """Return the last status that was written; None where there is none, or none that can be read."""
    try:
        return JobStatus.read(folder.status)
    except (OSError, ValueError):  # written by another version, or by hand: it must not keep a job from ending
        return None


def _describe_death(folder: JobFolder, ended: list[int], cancelled: str | None) -> JobResult:
    status = read_last_status(folder)
    ref = SupervisorRef.read(folder.supervisor)
    who = f"the supervisor (pid {ref.pid})" if ref is not None else "the supervisor"
    left = f"ended what it left behind: {render_pids(ended)}" if ended else "no process was left"
    began = ref.started_at if ref is not None else time.time()
    message = f"{who} died without a result; {left}"
    failure = FailureHeadline(
        kind="InfrastructureError" if cancelled is None else "CancelledError",
        message=message if cancelled is None else f"cancelled: {cancelled}",
        detail=read_last_lines(folder.supervisor_log, _LOG_LINES) if cancelled is None else "",
    )
    return JobResult(
        state=JobState.FAILED if cancelled is None else JobState.CANCELLED,
        started_at=began,
        ended_at=time.time(),
        attempts=status.attempt if status is not None else 1,
        failure=failure,
        exit_codes={rank.rank: rank.exit_code for rank in status.ranks} if status is not None else {},
        notes=(message,),
    )
