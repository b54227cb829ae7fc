"""Waits for the slots of a job, tick by tick, and tells the log for whom."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

from training.policy.failure import Cause
from training.policy.slots import SlotAction, SlotClaim, SlotDecision, count_slots
from training.run.atomic import explain_os_error
from training.run.slots import SlotSeeker
from training.run.verdict import Verdict, judge_job

LOOK_EVERY_S = 0.5
SAY_EVERY_S = 60.0
#: A table is held for milliseconds; whoever holds it longer is stopped or hangs.
_BUSY_S = 10.0


class SlotWait:
    """A job in the queue of its machine.

    Attributes:
        is_over: Whether it has its slots.
    """

    def __init__(
        self,
        seeker: SlotSeeker,
        *,
        timeout_s: float | None,
        now: float,
        say: Callable[[str], None],
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self.is_over = False
        self._seeker = seeker
        self._timeout_s = timeout_s
        self._wall_clock = wall_clock
        self._say = say
        self._began = self._answered_at = now
        self._look_at = now
        self._said = ""
        self._said_at = -math.inf
        self._why = f"{self._what}: nobody has told yet who holds them"

    def tick(self, now: float) -> Verdict | None:
        """Look whether it is this job's turn; return a verdict when it will not wait any longer."""
        if now < self._look_at:
            return None
        self._look_at = now + LOOK_EVERY_S
        try:
            decision = self._seeker.look()
        except OSError as error:
            return self._judge_trouble(error, now)
        if decision is not None and decision.action is SlotAction.REFUSE:
            return self._refuse(now)
        self._hear(decision, now)
        if not self.is_over and self._timeout_s is not None and now - self._began >= self._timeout_s:
            message = f"a free slot for each rank must be found within {self._timeout_s:g} s. Received: {self._why}."
            return judge_job(Cause.TEMPORARY, message, now, kind="LaunchError")
        return None

    def release(self) -> None:
        """Give the slots back, or leave the queue. Safe to repeat."""
        try:
            self._seeker.release()
        except OSError as error:
            self._say(
                f"{self._seeker.table.path}: {error.strerror}; its slots count as free when this process has ended"
            )

    @property
    def _what(self) -> str:
        return f"{self._seeker.wanted} of {count_slots(self._seeker.total)} of {self._seeker.table.host}"

    def _hear(self, decision: SlotDecision | None, now: float) -> None:
        if decision is None:
            if now - self._answered_at < _BUSY_S:
                return
            self._why = f"{self._what}: another process has held {self._seeker.table.path} for long"
        else:
            self._answered_at = now
            self._why = f"{self._what}: held by {describe_holders(decision.holders, self._wall_clock())}"
            self._why += f"; {len(decision.ahead)} before us" if decision.ahead else ""
        if decision is not None and decision.action is SlotAction.TAKE:
            self.is_over = True
            after = f" after {now - self._began:.1f} s" if self._said else ""
            numbers = ", ".join(map(str, decision.slots))
            self._say(f"took {self._what}{after}: {'slot' if len(decision.slots) == 1 else 'slots'} {numbers}")
        elif self._why != self._said or now - self._said_at >= SAY_EVERY_S:
            self._say(f"waiting for {self._why}")
            self._said, self._said_at = self._why, now

    def _refuse(self, now: float) -> Verdict:
        wanted = self._seeker.wanted
        message = (
            f"the ranks of a gang must be at most the slots of {self._seeker.table.host}, {self._seeker.total}. "
            f"Received: {wanted}. Use fewer workers, or set GANGER_SLOTS={wanted} to let ranks share cores."
        )
        return judge_job(Cause.PREFLIGHT, message, now)

    def _judge_trouble(self, error: OSError, now: float) -> Verdict:
        told = explain_os_error(error, self._seeker.table.path)
        return judge_job(Cause.TEMPORARY, f"the slots of this machine could not be taken: {told}", now)


def describe_holders(claims: Sequence[SlotClaim], now: float) -> str:
    """Return who holds slots, in words.

    >>> describe_holders([], 0.0)
    'nobody'
    """
    return (
        ", ".join(f"{c.job_id} ({count_slots(len(c.slots))}, since {_say_time(c.since, now)})" for c in claims)
        or "nobody"
    )


def _say_time(moment: float, now: float) -> str:
    """Return a time of day, with its date if that is not the same."""
    then, today = time.localtime(moment), time.localtime(now)
    return time.strftime("%H:%M" if then[:3] == today[:3] else "%Y-%m-%d %H:%M", then)
