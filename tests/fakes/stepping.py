"""A supervision stepped by hand: a fake launcher, a clock that stands still until it is moved, files in a folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fakes.launcher import FakeGang, FakeLauncher
from training.plan.job import JobPlan, LimitsPlan, ProcessPlan
from training.run.event import Epoch, Event, Failure, Ready, Result, Step
from training.run.folder import JobFolder, RunFolder
from training.run.job import FailureHeadline, JobResult, JobState, JobStatus
from training.run.journal import Journal
from training.run.lock import this_supervisor
from training.run.outside import Outside
from training.run.redact import Redactor
from training.run.scratch import Scratch
from training.run.slot_wait import SlotWait
from training.run.slots import SlotSeeker
from training.run.supervision import Mode, Supervision, Surroundings
from training.run.tracker_thread import TrackerThread

LIMITS = LimitsPlan(
    start_timeout_s=20, stall_timeout_s=30, stop_grace_s=10, finish_grace_s=15, lease_s=1_000, timeout_s=None
)


@dataclass
class World:
    """One job under supervision.

    Attributes:
        now: The clock.
        leftovers: What the next sweeps will find.
        slots: Slots that the job needs.
        total: Slots of the machine; worlds of one path share it.
    """

    path: Path
    run_id: str = "toy"
    limits: LimitsPlan = LIMITS
    ranks: int = 2
    processes: tuple[ProcessPlan, ...] = ()
    plan_fields: dict[str, Any] = field(default_factory=dict)
    tracker: TrackerThread | None = None
    environ: dict[str, str] = field(default_factory=dict)
    has_scratch: bool = False
    now: float = 100.0
    outside: Outside = field(default_factory=Outside)
    launcher: FakeLauncher = field(default_factory=FakeLauncher)
    leftovers: list[int] = field(default_factory=list)
    slots: int = 0
    queue_timeout_s: float | None = None
    total: int = 2

    def __post_init__(self) -> None:
        self.folder: JobFolder = RunFolder.of(self.run_id, self.path).job("train")
        self.folder.path.mkdir(parents=True)
        processes = self.processes or tuple(ProcessPlan(rank=n, argv=("toy",)) for n in range(self.ranks))
        self.plan = JobPlan(
            run_id=self.run_id, name="train", processes=processes, limits=self.limits, **self.plan_fields
        )
        journal = Journal(self.folder, Redactor(self.environ))
        around = Surroundings(
            launcher=self.launcher,
            journal=journal,
            tracker=self.tracker,
            sweep=self._sweep,
            wall_clock=lambda: self.now,
            scratch=Scratch(self.folder) if self.has_scratch else None,
            slots=self._join_queue(journal) if self.slots else None,
        )
        self.supervision = Supervision(self.plan, self.folder, around, self.now)

    def _join_queue(self, journal: Journal) -> SlotWait:
        self.seeker = SlotSeeker(
            self.folder,
            this_supervisor(),
            wanted=self.slots,
            total=self.total,
            wall_clock=lambda: self.now,
            say=journal.note,
        )
        return SlotWait(
            self.seeker,
            timeout_s=self.queue_timeout_s,
            now=self.now,
            wall_clock=lambda: self.now,
            say=journal.note,
        )

    def _sweep(self) -> list[int]:
        found, self.leftovers = self.leftovers, []
        return found

    @property
    def headline(self) -> FailureHeadline:
        """The failure that the job ended with."""
        assert self.result.failure is not None
        return self.result.failure

    @property
    def gang(self) -> FakeGang:
        return self.launcher.gang

    @property
    def result(self) -> JobResult:
        assert self.supervision.result is not None, f"not over: {self.supervision.mode}"
        return self.supervision.result

    @property
    def is_over(self) -> bool:
        return self.supervision.mode is Mode.OVER

    @property
    def merged(self) -> str:
        return self.folder.merged_log.read_text()

    @property
    def status(self) -> JobStatus:
        status = JobStatus.read(self.folder.status)
        assert status is not None
        return status

    def tick(self, seconds: float = 0.0) -> None:
        self.now += seconds
        self.supervision.tick(self.now, self.outside)

    def tick_until(self, done: Callable[[], bool], step: float = 0.1, limit: float = 120.0) -> float:
        """Tick until `done`, and return how many seconds of the clock that took."""
        began = self.now
        while not done():
            assert self.now - began < limit, f"not done after {limit} s: {self.supervision.mode}"
            self.tick(step)
        return self.now - began

    def start(self) -> None:
        """Start the gang and have all ranks join."""
        self.tick()
        for rank in self.gang.ranks:
            self.gang.tell(ready(rank))
        self.tick()
        assert self.status.state is JobState.RUNNING

    def run_to_end(self) -> JobResult:
        self.tick_until(lambda: self.is_over)
        return self.result


def ready(rank: int) -> Event:
    return Ready(rank=rank, pid=1_000_000 + rank, threads=1)


def step(rank: int, number: int, loss: float = 0.5) -> Event:
    return Step(rank=rank, step=number, epoch=1, metrics={"loss": loss})


def epoch(rank: int, number: int, at_step: int, **metrics: float) -> Event:
    return Epoch(rank=rank, epoch=number, epochs=5, step=at_step, metrics=metrics, seconds=1.25)


def failure(rank: int, error: str, message: str, exit_code: int = 70, at_step: int | None = None) -> Event:
    trace = f"Traceback (most recent call last):\n  in train\n{error}: {message}\n"
    return Failure(rank=rank, error=error, message=message, traceback=trace, exit_code=exit_code, step=at_step)


def result(rank: int, /, **values: object) -> Event:
    return Result(rank=rank, values=values)
