"""Where a job stands, for somebody who comes and must decide whether to join it, to take its result or to start it."""

from __future__ import annotations

import enum

from training.run.folder import JobFolder
from training.run.job import JobResult
from training.run.lock import is_supervised


class Standing(enum.StrEnum):
    """What whoever comes to a job finds."""

    ABSENT = "absent"
    """It was never started."""
    ACTIVE = "active"
    """It runs, waits to, or closes its tracking: follow it."""
    ENDING = "being cancelled"
    """Somebody wants its end, and it still runs."""
    LOST = "lost"
    """Its supervisor died without a result."""
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


def read_standing(folder: JobFolder) -> Standing:
    """Return where the job in `folder` stands."""
    result = JobResult.read(folder.result)
    if result is not None:
        return Standing(result.state)
    if is_supervised(folder):
        return Standing.ENDING if folder.cancel.exists() else Standing.ACTIVE
    result = JobResult.read(folder.result)  # written between the two looks
    if result is not None:
        return Standing(result.state)
    return Standing.LOST if folder.job.exists() else Standing.ABSENT
