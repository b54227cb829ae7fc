"""Tasks of rank processes that ask or end the tracking server: `check_tracking` and `close_tracking`."""

from __future__ import annotations

from pathlib import Path

from training.run.folder import RunFolder
from training.run.job import JobState
from training.run.rank import RankContext
from training.tracking import preflight
from training.tracking.replay import STATUS_OF, close_open_runs


def check_tracking(ctx: RankContext) -> None:
    """Check the payload's `tracking_uri` and `experiment` before anything is trained.

    Raises:
        PreflightError: A person must heal it.
        TrackingError: A retry may succeed.
    """
    ctx.ready()
    preflight.check_tracking(ctx.payload["tracking_uri"], ctx.payload["experiment"])
    ctx.result({})


def close_tracking(ctx: RankContext) -> None:
    """Send what waits in the journals of the payload's `run`, and end its MLflow run as `state` says."""
    ctx.ready()
    status = STATUS_OF.get(JobState(ctx.payload["state"]), "KILLED")
    notes = close_open_runs(RunFolder(Path(ctx.payload["run"])), status)
    for note in notes:
        print(note, flush=True)
    ctx.result({"notes": list(notes)})
