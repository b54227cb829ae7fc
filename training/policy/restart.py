"""Whether a gang that failed is started again, and when."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass

from training.policy.failure import Cause


class Budget(enum.StrEnum):
    """What the restarts after a failure are counted against."""

    INFRASTRUCTURE = "infrastructure"
    USER = "user"
    PORTS = "ports"
    NEVER = "never"


#: Who pays for the restart after a failure; `NEVER` where it would only meet the same, or where the end was wanted.
BUDGETS: dict[Cause, Budget] = {
    Cause.SPEC: Budget.NEVER,
    Cause.PREFLIGHT: Budget.NEVER,
    Cause.USER_CODE: Budget.USER,
    Cause.DIVERGED: Budget.NEVER,
    Cause.OUT_OF_MEMORY: Budget.USER,
    Cause.OUTPUT_MISSING: Budget.USER,
    Cause.SIGNAL: Budget.INFRASTRUCTURE,
    Cause.LOST_PEER: Budget.INFRASTRUCTURE,
    Cause.PORT_TAKEN: Budget.PORTS,
    Cause.TEMPORARY: Budget.INFRASTRUCTURE,
    Cause.START_DEADLINE: Budget.INFRASTRUCTURE,
    Cause.STALL: Budget.INFRASTRUCTURE,
    Cause.LATE: Budget.INFRASTRUCTURE,
    Cause.TIMEOUT: Budget.NEVER,
    Cause.CANCELLED: Budget.NEVER,
}


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
    """Restarts what may heal, within budgets that do not eat into each other, with growing pauses.

    A taken port (K04) has a budget of its own: that ports are picked and bound at different moments is our doing, not a
    fault of the job, and fresh ports cost nothing.

    Attributes:
        restarts: Restarts that the spec allows after failures of the infrastructure.
        user_restarts: Restarts that it allows after failures of the user's code.
        port_retries: Restarts with fresh ports.
        backoff_s: Pause before the first restart, doubled for each further one.
        backoff_max_s: Longest pause.
    """

    restarts: int = 0
    user_restarts: int = 0
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
        Decision(action=<Action.RESTART: 'restart'>, delay_s=0.5, reason='signal: restart 1 of 2 (infrastructure)')
        """
        budget = BUDGETS[failure.cause]
        if budget is Budget.NEVER:
            return Decision(action=Action.FAIL, reason=f"{failure.cause}: a restart would meet the same")
        used = sum(BUDGETS[past.cause] is budget for past in history)
        allowed = self.allowed(budget)
        if used >= allowed:
            why = f"all of {allowed} restarts are used" if allowed else "no restart is allowed"
            return Decision(action=Action.FAIL, reason=f"{failure.cause}: {why} ({budget})")
        pause = 0.0 if budget is Budget.PORTS else min(self.backoff_s * 2**used, self.backoff_max_s)
        return Decision(
            action=Action.RESTART,
            delay_s=max(0.0, failure.at + pause - now),
            reason=f"{failure.cause}: restart {used + 1} of {allowed} ({budget})",
        )

    def allowed(self, budget: Budget) -> int:
        """Return how many restarts a budget holds."""
        sizes = {
            Budget.INFRASTRUCTURE: self.restarts,
            Budget.USER: self.user_restarts,
            Budget.PORTS: self.port_retries,
            Budget.NEVER: 0,
        }
        return sizes[budget]
