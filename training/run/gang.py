"""Watches one attempt of a job, tick by tick: hears its ranks, judges them, ends the rest when one fails.

A tick never blocks and never reads a clock: `now` is given. What ranks are and where they run, only the launcher knows.
"""

from __future__ import annotations

import enum
import signal
from collections.abc import Callable

from training.launch.api import Gang
from training.plan.job import JobPlan
from training.policy.failure import Cause
from training.policy.patterns import compile_pattern
from training.run.event import Event
from training.run.hearing import Hearing
from training.run.job import RankStatus
from training.run.journal import Journal
from training.run.judge import find_failure, find_late, find_missing, find_stalled
from training.run.turn import is_called
from training.run.verdict import Verdict
from training.run.watch import RankWatch

#: Between asking for stacks and the end.
DUMP_S = 0.5
#: A rank that told of its failure is about to end by itself, with an exit code that says more than a signal's.
FAREWELL_S = 1.0
#: Pipes are read so long after the ranks have ended; a grandchild may hold them open for ever.
DRAIN_S = 0.5


class Phase(enum.Enum):
    """Life stages of an attempt."""

    WATCHING = enum.auto()
    STOPPING = enum.auto()
    DRAINING = enum.auto()
    OVER = enum.auto()


class GangWatch:
    """One attempt: from started processes to a verdict and no processes.

    Attributes:
        ranks: What is known of each rank.
        phase: Where the attempt is.
        verdict: Why it was ended; None while it runs, and when all ended well.
    """

    def __init__(
        self,
        plan: JobPlan,
        gang: Gang,
        journal: Journal,
        now: float,
        on_event: Callable[[Event], None] = lambda _: None,
    ) -> None:
        patterns = tuple(compile_pattern(one.pattern, one.treat_as) for one in plan.limits.failure_patterns)
        self.ranks = {
            process.rank: RankWatch(process=process, pid=gang.pids.get(process.rank), sign_at=now, patterns=patterns)
            for process in plan.processes
        }
        self.phase = Phase.WATCHING
        self.verdict: Verdict | None = None
        self._gang = gang
        self._limits = plan.limits
        self._journal = journal
        self._hearing = Hearing(self.ranks, journal, on_event)
        self._started_at = now
        self._turn: int | None = None
        self._complete_at: float | None = None
        self._first_done_at: float | None = None
        self._term_at = self._kill_at = self._drain_until = 0.0
        self._sent: set[tuple[int, signal.Signals]] = set()

    @property
    def is_complete(self) -> bool:
        """Whether every rank has joined."""
        return all(rank.ready for rank in self.ranks.values())

    @property
    def is_ending(self) -> bool:
        """Whether deadlines of fractions of a second are running."""
        return self.phase in (Phase.STOPPING, Phase.DRAINING)

    @property
    def workers(self) -> list[RankWatch]:
        """The ranks that end by themselves."""
        return [rank for rank in self.ranks.values() if not rank.process.service]

    def statuses(self) -> tuple[RankStatus, ...]:
        """Return what others may know of the ranks."""
        return tuple(rank.status() for rank in self.ranks.values())

    def exit_codes(self) -> dict[int, int | None]:
        """Return rank to exit code; None for those that did not end."""
        return {number: rank.exit_code for number, rank in self.ranks.items()}

    def wait(self, timeout_s: float) -> None:
        """Return when there is something for the next tick, or the time is over."""
        self._gang.wait(timeout_s)

    def tick(self, now: float) -> None:
        """Do what is due."""
        if self.phase is Phase.OVER:
            return
        self._hearing.listen(self._gang, now, expected=self.phase is not Phase.WATCHING)
        if self.phase is Phase.WATCHING:
            self._note_progress(now)
            self._judge(now)
        if self.phase is Phase.STOPPING:
            self._press(now)
        if self.phase is Phase.DRAINING and (self._gang.is_drained or now >= self._drain_until):
            self._finish(now)

    def hear_turn(self, turn: int | None, now: float) -> None:
        """Note whose turn to begin has been called; they have the whole time to become ready from now on."""
        if turn != self._turn:
            self._turn = turn
            self._started_at = now

    def stop(self, verdict: Verdict | None, now: float) -> None:
        """Begin to end the gang; the first verdict counts."""
        if self.phase is not Phase.WATCHING:
            return
        self.verdict = verdict
        self.phase = Phase.STOPPING
        self._term_at = now + (DUMP_S if verdict is not None and self._dump_stacks(verdict) else 0.0)
        self._kill_at = self._term_at + self._limits.stop_grace_s

    def abandon(self) -> None:
        """End everything at once: the supervisor itself cannot go on."""
        self._gang.close()
        self.phase = Phase.OVER

    def _note_progress(self, now: float) -> None:
        if self._complete_at is None and self.is_complete:
            self._complete_at = now
            if len(self.ranks) > 1:
                self._journal.note(f"all {len(self.ranks)} ranks are ready after {now - self._started_at:.1f} s")
        done = [rank.process.name for rank in self.workers if rank.ended_well]
        running = [rank.process.name for rank in self.workers if rank.is_running]
        if self._first_done_at is None and done:
            self._first_done_at = now
            if running:
                grace_s = self._limits.finish_grace_s
                self._journal.note(f"done: {', '.join(done)}; {', '.join(running)} may go on for {grace_s:g} s")

    def _judge(self, now: float) -> None:
        ranks = list(self.ranks.values())
        if any(rank.failed_at is not None for rank in ranks):
            verdict = find_failure(ranks, now, self._gang.is_stopped)
        elif all(rank.ended_well for rank in self.workers):
            self.stop(None, now)
            return
        else:
            verdict = self._find_overdue(now)
        if verdict is not None:
            self.stop(verdict, now)

    def _find_overdue(self, now: float) -> Verdict | None:
        if self._complete_at is None:
            called = [rank for rank in self.ranks.values() if is_called(rank.process.turn, self._turn)]
            return find_missing(called, self._limits, self._started_at, now)
        verdict = find_stalled(list(self.ranks.values()), self._limits, self._complete_at, now, self._gang.is_stopped)
        if verdict is None and self._first_done_at is not None:
            verdict = find_late(self.workers, self._limits, self._first_done_at, now)
        return verdict

    def _dump_stacks(self, verdict: Verdict) -> bool:
        """Have all ranks say where they hang, if hanging is what they are ended for."""
        if verdict.cause not in (Cause.STALL, Cause.START_DEADLINE, Cause.LATE):
            return False
        running = [number for number, rank in self.ranks.items() if rank.is_running]
        return sum(self._gang.dump_stacks(number) for number in running) > 0

    def _press(self, now: float) -> None:
        if all(not rank.is_running for rank in self.ranks.values()):
            self.phase = Phase.DRAINING
            self._drain_until = now + DRAIN_S
            self._send(signal.SIGTERM, list(self.ranks))  # to children that they left behind
        elif now >= self._kill_at:
            self._send(signal.SIGKILL, list(self.ranks))
        elif now >= self._term_at:
            leaves_alone = now < self._term_at + FAREWELL_S
            asked = [n for n, rank in self.ranks.items() if not (leaves_alone and rank.is_running and rank.failure)]
            self._send(signal.SIGTERM, asked)

    def _send(self, signum: signal.Signals, numbers: list[int]) -> None:
        """Signal the groups of ranks, each once."""
        fresh = [number for number in numbers if (number, signum) not in self._sent]
        self._sent.update((number, signum) for number in fresh)
        running = ", ".join(self.ranks[number].process.name for number in fresh if self.ranks[number].is_running)
        if running:
            self._journal.note(f"{signum.name} to {running}")
        for number in fresh:
            self._gang.signal(number, signum)
            if signum is signal.SIGTERM:
                self._gang.signal(number, signal.SIGCONT)  # a stopped process gets it only when it goes on

    def _finish(self, now: float) -> None:
        self._hearing.close(now)
        self._gang.close()
        self.phase = Phase.OVER
