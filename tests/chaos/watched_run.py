"""A training seen from outside: what its run folder tells, and the processes that belong to it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.chaos.fault import Moment, Stage
from training.run.event import RECORD_SEPARATOR, Checkpoint, Event, Heartbeat, Step, parse_line
from training.run.folder import JobFolder, RunFolder
from training.run.job import JobResult, JobStatus, SupervisorRef

#: On a busy machine; a training in which the moment never comes ends before.
WAIT_S = 240.0
_POLL_S = 0.002


class MissedError(Exception):
    """The moment for a fault never came."""


@dataclass(slots=True)
class WatchedRun:
    """One run, which may not have begun.

    Attributes:
        folder: The run folder.
    """

    folder: RunFolder
    _events: list[Event] = field(default_factory=list)
    _read: int = 0

    @property
    def train(self) -> JobFolder:
        """The job of the gang."""
        return self.folder.job("train")

    def status(self) -> JobStatus | None:
        """Return the current state of the gang."""
        return JobStatus.read(self.train.status)

    def results(self) -> list[JobResult]:
        """Return how each try of the gang ended, the first one first."""
        archived = sorted(self.train.path.glob("result-*.json"), key=lambda path: int(path.stem.split("-")[1]))
        found = [JobResult.read(path) for path in [*archived, self.train.result]]
        return [result for result in found if result is not None]

    def rank_pids(self, attempt: int | None = None) -> dict[int, int]:
        """Return rank to pid, for an attempt or for the current one; empty where it has not begun."""
        status = self.status()
        if status is None or (attempt is not None and status.attempt != attempt):
            return {}
        return {rank.rank: rank.pid for rank in status.ranks if rank.pid is not None and rank.exit_code is None}

    def supervisor_pid(self) -> int:
        """Return the pid of the gang's supervisor."""
        ref = SupervisorRef.read(self.train.supervisor)
        assert ref is not None, f"{self.train.supervisor} must be there"
        return ref.pid

    def events(self) -> list[Event]:
        """Return all events so far, of all attempts."""
        if self.train.events.exists():
            with self.train.events.open("rb") as stream:
                stream.seek(self._read)
                whole, _, _ = stream.read().rpartition(b"\n")
            self._read += len(whole) + 1 if whole else 0
            lines = whole.decode().splitlines() if whole else []
            self._events += [event for line in lines if (event := parse_line(RECORD_SEPARATOR + line)[1])]
        return self._events

    def merged(self) -> str:
        """Return the merged log of the gang."""
        return self.train.merged_log.read_text() if self.train.merged_log.exists() else ""

    def ports(self) -> set[int]:
        """Return the ports that were chosen for the gang, in all attempts."""
        return {int(port) for port in re.findall(r"(?<=, )port \S+ (\d+)", self.merged())}

    def last_checkpoint(self) -> int:
        """Return the step of the last checkpoint that was told of, 0 before the first."""
        return max((event.step for event in self.events() if isinstance(event, Checkpoint)), default=0)

    def last_step(self) -> int:
        """Return the last step that the chief told of, 0 before the first."""
        steps = [event.step for event in self.events() if isinstance(event, Step) and event.rank == 0]
        return steps[-1] if steps else 0

    def wait_for(self, moment: Moment, is_over: Callable[[], bool] = lambda: False) -> None:
        """Wait until the training is there.

        Raises:
            MissedError: It is over, or too much time is.
        """
        began_at = 0 if moment.attempt == 1 else None
        end = time.monotonic() + WAIT_S
        while True:
            over = is_over()
            if began_at is None and self.rank_pids(moment.attempt):
                began_at = len(self.events())
            if began_at is not None and self._is_at(moment, self.events()[began_at:]):
                return
            if over or time.monotonic() > end:
                raise MissedError(f"{moment} never came; the last step told was {self.last_step()}")
            time.sleep(_POLL_S)

    def _is_at(self, moment: Moment, events: list[Event]) -> bool:
        match moment.stage:
            case Stage.STARTING:
                status = self.status()
                return bool(self.rank_pids(moment.attempt)) and not any(rank.ready for rank in status.ranks)  # type: ignore[union-attr]
            case Stage.STEP:
                return any(isinstance(event, Step) and event.step >= moment.step for event in events[-20:])
            case Stage.CHECKPOINT:
                return any(self.folder.checkpoints.glob(f"*step-{moment.step:08d}*"))
            case Stage.SAVING:
                return any(isinstance(event, Heartbeat) and event.doing == "saving the model" for event in events[-20:])
