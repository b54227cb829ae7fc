"""What is known of one rank while its gang runs."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field

from training.plan.job import ProcessPlan
from training.policy.failure import Cause, FailureClass, FailureReport
from training.policy.patterns import FailurePattern, classify_by
from training.policy.stall import RankSign
from training.run.event import Checkpoint, Done, Epoch, Event, Failure, Heartbeat, Model, Ready, Result, Step
from training.run.job import RankStatus

_LINES_KEPT = 40


@dataclass(slots=True)
class RankWatch:
    """The facts of one rank, filled in as they come.

    Attributes:
        process: Its plan.
        pid: Its process id, where the backend tells.
        sign_at: When it last printed or told anything.
        patterns: Those of the spec.
        ready: Whether it has joined.
        exit_code: What it exited with, negative for a signal; None while it runs.
        done: Whether it told that its task returned.
        failed_at: When the first sign of a failure was seen: it told of it, it ended badly or too early, its loss
            was not finite.
    """

    process: ProcessPlan
    pid: int | None
    sign_at: float
    patterns: tuple[FailurePattern, ...] = ()
    ready: bool = False
    done: bool = False
    exit_code: int | None = None
    failed_at: float | None = None
    failure: Failure | None = None
    diverged: str = ""
    result: Result | None = None
    step: int = 0
    doing: str = ""
    lines: deque[str] = field(default_factory=lambda: deque(maxlen=_LINES_KEPT))

    def __post_init__(self) -> None:
        self.ready = self.process.ready_on == "start"

    @property
    def is_running(self) -> bool:
        """Whether the process has not ended."""
        return self.exit_code is None

    @property
    def ended_well(self) -> bool:
        """Whether the process ended, and nothing is wrong with that."""
        return self.exit_code == 0 and self.failed_at is None

    @property
    def left_early(self) -> bool:
        """Whether the process ended with exit code 0 in the middle of its task, as by `os._exit(0)` in user code."""
        told_nothing = not self.done and self.failure is None and not self.diverged
        return self.exit_code == 0 and told_nothing and self._must_tell_done

    @property
    def last_line(self) -> str:
        """The last line that is not empty."""
        return next((line for line in reversed(self.lines) if line.strip()), "")

    def hear_output(self, now: float) -> None:
        """Note that the rank printed something, be it half a line."""
        self.sign_at = now
        self.ready = self.ready or self.process.ready_on == "output"

    def hear_event(self, event: Event, now: float) -> None:
        """Note what the rank told."""
        if isinstance(event, Ready | Step | Epoch | Checkpoint | Model | Result):
            self.ready = True
        match event:
            case Step() | Epoch():
                self.step = max(self.step, event.step)
                self._check_finite(event, now)
            case Failure() if self.failure is None:
                self.failure = event
                self.step = event.step or self.step
                self._fail(now)
            case Result():
                self.result = event
            case Done():
                self.done = True
            case Heartbeat():
                self.doing = event.doing
            case _:
                pass

    def hear_exit(self, exit_code: int, now: float, *, expected: bool) -> None:
        """Note that the process ended; `expected` if it was told to."""
        self.exit_code = exit_code
        if not expected and (exit_code != 0 or self.left_early):  # a service that ends well has served all
            self._fail(now)

    def sign(self, since: float, *, stopped: bool) -> RankSign:
        """Return its last sign of life, which counts from `since` at the earliest."""
        return RankSign(rank=self.process.rank, at=max(self.sign_at, since), step=self.step, stopped=stopped)

    def classify(self) -> FailureClass:
        """Return what kind of failure its failure is."""
        if self.diverged:
            return FailureClass(cause=Cause.DIVERGED, kind="DivergedError")
        if self.left_early:  # whatever its last lines say: it was not the peers that ended it
            return FailureClass(cause=Cause.USER_CODE, kind="WorkerError")
        told = self.failure
        return classify_by(
            self.patterns,
            FailureReport(
                exit_code=told.exit_code if told is not None and not self.exit_code else self.exit_code,
                error=told.error if told is not None else "",
                message=told.message if told is not None else "",
                lines=tuple(self.lines),
            ),
        )

    def status(self) -> RankStatus:
        """Return what others may know of it."""
        return RankStatus(
            rank=self.process.rank,
            name=self.process.name,
            host=self.process.host,
            pid=self.pid,
            ready=self.ready,
            exit_code=self.exit_code,
            step=self.step,
            last_line=self.last_line,
        )

    @property
    def _must_tell_done(self) -> bool:
        """Scripts know nothing of events, and services have no task."""
        return self.process.ready_on == "event" and not self.process.service

    def _check_finite(self, event: Step | Epoch, now: float) -> None:
        bad = {name: value for name, value in event.metrics.items() if "loss" in name and not math.isfinite(value)}
        if bad and not self.diverged:
            name, value = next(iter(bad.items()))
            self.diverged = f"{name} became {value} at step {event.step} of epoch {event.epoch}"
            self._fail(now)

    def _fail(self, now: float) -> None:
        if self.failed_at is None:
            self.failed_at = now
