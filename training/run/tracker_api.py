"""What the supervisor expects of whoever writes a job down, and the one that writes nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from training.run.event import Event
from training.run.job import JobResult, JobState


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackingReport:
    """What came of the tracking of a job.

    Attributes:
        closed: Whether the tracking run has its final status and nothing waits on disk.
        notes: What a person should know.
    """

    closed: bool = True
    notes: tuple[str, ...] = ()


class Tracker(Protocol):
    """Writes a job down. All calls come from one thread of its own, in order; they may block and may raise."""

    def open(self) -> str | None:
        """Make or find the run and return its id, or None where the server is away. Called before the ranks start."""

    def handle(self, event: Event) -> None:
        """Take an event of a rank."""

    def close(self, state: JobState, result: JobResult) -> TrackingReport | None:
        """Write what is left and give the run its final status; None says that nothing is left to say."""


class NullTracker:
    """Writes nothing: for jobs without tracking."""

    def open(self) -> str | None:
        """Return None: there is no run."""
        return None

    def handle(self, event: Event) -> None:
        """Ignore the event."""

    def close(self, state: JobState, result: JobResult) -> TrackingReport | None:
        """Do nothing."""
        return None
