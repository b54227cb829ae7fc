"""The side of a job that asks: start it or find it running, follow its log, end it, turn its result into an error.

Used by Airflow tasks and by the command line alike. Nothing here holds a process: whoever follows may die, and the next
one goes on.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from training.errors import CancelledError, GangerError, LaunchError, Problem, SpecError
from training.policy.failure import find_error_class
from training.run.chatter import Chatter
from training.run.end import cancel, clean_up, renew_lease, stop
from training.run.folder import JobFolder
from training.run.job import FailureHeadline, JobResult, JobState, JobStatus
from training.run.lock import is_supervised
from training.run.start import start_or_attach
from training.run.tail import LogTail
from training.run.verdict import render_headline

__all__ = [
    "cancel",
    "clean_up",
    "follow",
    "follow_rank",
    "log_size",
    "raise_for",
    "renew_lease",
    "start_or_attach",
    "stop",
]

_LEASE_EVERY_S = 1.0


def _ignore(line: str) -> None:
    """Take a line and do nothing."""


def follow(
    folder: JobFolder,
    *,
    on_line: Callable[[str], None] = _ignore,
    on_status: Callable[[JobStatus], None] | None = None,
    offset: int = 0,
    lease: bool = True,
    poll_s: float = 0.2,
    should_stop: Callable[[], bool] | None = None,
) -> JobResult:
    """Follow a job to its end and return its result. Cleans up after a supervisor that died without one.

    Args:
        folder: The job.
        on_line: Takes each new line of the merged log.
        on_status: Takes the status whenever it has changed.
        offset: Bytes of the merged log to leave out (`log_size` tells how many there are).
        lease: Keep the job alive by looking. Whoever only watches leaves that to others.
        poll_s: Seconds between two looks.
        should_stop: Asked at each look; when it says yes, the job is cancelled, and followed to its end all the same.

    Raises:
        LaunchError: The job was never started.
    """
    if not folder.job.exists():
        raise LaunchError(f"{folder.job_id} must have been started to be followed. Received: no {folder.job}.")
    tail = LogTail(folder.merged_log, offset)
    status: JobStatus | None = None
    leased_at = time.monotonic() - _LEASE_EVERY_S
    while True:
        leased_at = _renew(folder, leased_at) if lease else leased_at
        if should_stop is not None and should_stop() and not folder.cancel.exists():
            cancel(folder, "its follower was told to stop")
        result = _read_end(folder)  # before the log, which then has all its lines
        for line in tail.read(to_end=result is not None):
            on_line(line)
        status = _tell_status(folder, status, on_status) if on_status is not None else None
        if result is not None:
            return result
        time.sleep(poll_s)


def follow_rank(
    folder: JobFolder, rank: int, *, on_line: Callable[[str], None] = _ignore, offset: int = 0, poll_s: float = 0.2
) -> JobResult | None:
    """Follow one rank of a job until it is ready; return the result of the job where that is over before.

    Args:
        folder: The job.
        rank: Number of the process.
        on_line: Takes each line of the rank's own log that a person needs.
        offset: Bytes of that log to leave out, such as those of earlier attempts.
        poll_s: Seconds between two looks.
    """
    tail, chatter = LogTail(folder.rank_log(rank), offset), Chatter()
    leased_at = time.monotonic() - _LEASE_EVERY_S
    while True:
        leased_at = _renew(folder, leased_at)
        result, status = _read_end(folder), JobStatus.read(folder.status)
        is_ready = status is not None and any(one.ready for one in status.ranks if one.rank == rank)
        for line in tail.read(to_end=result is not None):
            if not chatter.has(line):
                on_line(line)
        if result is not None or is_ready:
            return result
        time.sleep(poll_s)


def log_size(folder: JobFolder, rank: int | None = None) -> int:
    """Return how many bytes the merged log has, or the log of a rank."""
    path = folder.merged_log if rank is None else folder.rank_log(rank)
    return path.stat().st_size if path.exists() else 0


def raise_for(result: JobResult) -> None:
    """Raise the error that a result tells of; return for a success.

    Its message is a line that names the rank, followed by that rank's traceback or last lines.

    Raises:
        GangerError: Of the class that `result.failure.kind` names.
    """
    if result.state is JobState.SUCCEEDED:
        return
    failure = result.failure or FailureHeadline(kind="", message=f"the job {result.state}")
    message = "\n".join(part for part in (render_headline(failure), failure.detail.rstrip()) if part)
    if result.state is JobState.CANCELLED:
        raise CancelledError(message)
    error_class = find_error_class(failure.kind) or GangerError
    if issubclass(error_class, SpecError):
        raise error_class([Problem(field="", message=message)])
    raise error_class(message)


def _renew(folder: JobFolder, leased_at: float) -> float:
    """Renew the lease if that is due, and return when it was renewed last."""
    if time.monotonic() - leased_at < _LEASE_EVERY_S:
        return leased_at
    renew_lease(folder)
    return time.monotonic()


def _read_end(folder: JobFolder) -> JobResult | None:
    result = JobResult.read(folder.result)
    if result is None and not is_supervised(folder):
        return clean_up(folder)
    return result


def _tell_status(
    folder: JobFolder, known: JobStatus | None, on_status: Callable[[JobStatus], None]
) -> JobStatus | None:
    status = JobStatus.read(folder.status)
    if status is not None and status != known:
        on_status(status)
    return status
