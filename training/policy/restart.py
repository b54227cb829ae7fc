"""Whether a gang that failed is started again, and when."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass

from training.policy.failure import Cause

#: Failures that the next try may not meet again. What is not listed here fails at once: it would fail the same way.
RESTARTABLE = frozenset(
    {
        Cause.SIGNAL,
        Cause.LOST_PEER,
        Cause.PORT_TAKEN,
        Cause.TEMPORARY,
        Cause.START_DEADLINE,
        Cause.STALL,
        Cause.LATE,
    }
)


class Action(enum.StrEnum):
    """What to do with a gang that failed."""

    RESTART = "restart"
    FAIL = "fail"


@dataclass(frozen=True, slots=True, kw_only=True)
class PastFailure:
    """A failure of an attempt.

    Attributes:
        cause: What it was.
        at: When it was seen, in seconds of the same clock as `now`.
    """

    cause: Cause
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What to do, after how many seconds from now, and why."""

    action: Action
    delay_s: float = 0.0
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartPolicy:
    """Restarts what may heal, within a budget, with growing pauses.

    A taken port (K04) has a budget of its own: that ports are picked and bound at different moments is our doing, not a
    fault of the job, and fresh ports cost nothing.

    Attributes:
        restarts: Restarts that the spec allows.
        port_retries: Restarts with fresh ports.
        backoff_s: Pause before the first restart, doubled for each further one.
        backoff_max_s: Longest pause.
    """

    restarts: int = 0
    port_retries: int = 3
    backoff_s: float = 1.0
    backoff_max_s: float = 30.0

    def decide(self, failure: PastFailure, history: Sequence[PastFailure], now: float) -> Decision:
        """Return what to do after `failure`.

        Args:
            failure: The failure of the attempt that just ended.
            history: The failures of the attempts before it.
            now: Time, in seconds of the clock that the failures were stamped with.

        >>> RestartPolicy(restarts=2).decide(PastFailure(cause=Cause.SIGNAL, at=10.0), [], 10.5)
        Decision(action=<Action.RESTART: 'restart'>, delay_s=0.5, reason='signal: restart 1 of 2')
        """
        if failure.cause not in RESTARTABLE:
            return Decision(action=Action.FAIL, reason=f"{failure.cause}: a restart would meet the same")
        of_ports = failure.cause is Cause.PORT_TAKEN
        used = sum((past.cause is Cause.PORT_TAKEN) == of_ports for past in history)
        allowed = self.port_retries if of_ports else self.restarts
        if used >= allowed:
            why = f"all of {allowed} restarts are used" if allowed else "no restart is allowed"
            return Decision(action=Action.FAIL, reason=f"{failure.cause}: {why}")
        pause = 0.0 if of_ports else min(self.backoff_s * 2**used, self.backoff_max_s)
        return Decision(
            action=Action.RESTART,
            delay_s=max(0.0, failure.at + pause - now),
            reason=f"{failure.cause}: restart {used + 1} of {allowed}",
        )
