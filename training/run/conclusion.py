"""How a job ended: from the last verdict and what the ranks told to the `JobResult`. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from training import errors
from training.errors import EXIT_CANCELLED, EXIT_OK
from training.policy.failure import Cause, find_error_class
from training.run.job import JobResult, JobState
from training.run.tracker_api import TrackingReport
from training.run.verdict import Verdict
from training.run.watch import RankWatch


def conclude(
    verdict: Verdict | None,
    ranks: Sequence[RankWatch],
    *,
    started_at: float,
    ended_at: float,
    attempts: int,
    notes: tuple[str, ...],
) -> JobResult:
    """Return the result of a job without tracking."""
    told = [rank.result for rank in ranks if rank.result is not None]
    return JobResult(
        state=_state_of(verdict),
        started_at=started_at,
        ended_at=ended_at,
        attempts=attempts,
        failure=verdict.headline if verdict is not None else None,
        exit_codes={rank.process.rank: rank.exit_code for rank in ranks},
        values=min(told, key=lambda result: result.rank).values if told else {},
        tracking_closed=True,
        notes=notes,
    )


def add_tracking(result: JobResult, run_id: str | None, report: TrackingReport) -> JobResult:
    """Return the result with what came of its tracking."""
    notes = (*result.notes, *report.notes)
    return result.model_copy(update={"mlflow_run_id": run_id, "tracking_closed": report.closed, "notes": notes})


def exit_code_of(result: JobResult) -> int:
    """Return what a process that ends with this result exits with."""
    if result.state is JobState.SUCCEEDED:
        return EXIT_OK
    if result.state is JobState.CANCELLED:
        return EXIT_CANCELLED
    kind = find_error_class(result.failure.kind) if result.failure is not None else None
    return (kind or errors.GangerError).exit_code


def _state_of(verdict: Verdict | None) -> JobState:
    if verdict is None:
        return JobState.SUCCEEDED
    return JobState.CANCELLED if verdict.cause is Cause.CANCELLED else JobState.FAILED
