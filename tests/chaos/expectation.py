"""What must come out of a training to which a fault was done: the policy in words that can be checked. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.chaos.fault import OF_A_RANK, Fault, Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """How a training must end.

    Attributes:
        state: How the first command must end: `succeeded`, `failed`, `cancelled`, or `killed` if that was the fault.
        error: Class of the error that the job `train` must have ended with at first; empty if it must not have.
        rank: The rank that the headline must name; None if none.
        says: What the headline, or for a restart the result's note on it, must contain.
        attempts: Attempts of the gang, those of a resumed try included.
        resumes: Whether a second command must carry it on to a success.
        joins: Whether the second command, or the second try of Airflow's task, must find the gang running.
        logs: What the log of the gang must contain.
        steps_again: Whether steps before the newest checkpoint may be trained again.
    """

    state: str = "succeeded"
    error: str = ""
    rank: int | None = None
    says: str = ""
    attempts: int = 1
    resumes: bool = False
    joins: bool = False
    logs: str = ""
    steps_again: bool = False


def expect(fault: Fault) -> Expectation:
    """Return how a training with `fault` must end.

    >>> from tests.chaos.fault import Moment, Stage
    >>> expected = expect(Fault(number=1, kind=Kind.RANK_EXITS, rank=1, moment=Moment(Stage.STEP, 30)))
    >>> expected.state, expected.error, expected.rank, expected.says
    ('failed', 'WorkerError', 1, 'exit code 7')
    """
    named = {"rank": fault.rank} if fault.kind in _NAMES_RANK else {}
    return Expectation(**_FIELDS[fault.kind], **named)


_KILLED = {"says": "killed by SIGKILL", "attempts": 2}
_FAILED = {"state": "failed", "error": "InfrastructureError"}
_ENDED = {"error": "CancelledError", "attempts": 2, "resumes": True}
_FOLLOWED = {"state": "killed", "resumes": True, "joins": True}
_DAMAGED = {**_KILLED, "steps_again": True, "logs": "is damaged ("}
_NO_ROOM = {"says": "bytes free on its disk"}
_FIELDS: dict[Kind, dict[str, Any]] = {
    Kind.RANK_KILLED: _KILLED,
    Kind.RANK_KILLED_AGAIN: {**_KILLED, "attempts": 3},
    Kind.RANK_KILLED_FOR_GOOD: {**_KILLED, **_FAILED, "resumes": True},
    Kind.RANK_CRASHED: {"says": "killed by SIGSEGV", "attempts": 2},
    Kind.RANK_STOPPED: {"says": "SIGSTOP", "attempts": 2},
    Kind.RANK_EXITS: {"state": "failed", "error": "WorkerError", "says": "exit code 7"},
    Kind.RANK_RAISES: {"state": "failed", "error": "WorkerError", "says": "no rows today"},
    Kind.RANK_OUT_OF_MEMORY: {"state": "failed", "error": "WorkerError", "says": "no memory today"},
    Kind.LOSS_NAN: {"state": "failed", "error": "DivergedError", "says": "nan"},
    Kind.SUPERVISOR_KILLED: {**_FAILED, "says": "died without a result", "attempts": 2, "resumes": True},
    Kind.TASK_KILLED: _FOLLOWED,
    Kind.TASK_AND_RANK_KILLED: {**_KILLED, **_FOLLOWED},
    Kind.TASK_ABANDONED: {**_ENDED, "state": "killed", "says": "nobody has followed the job"},
    Kind.AIRFLOW_TASK_KILLED: {"joins": True},
    Kind.INTERRUPTED: {**_ENDED, "state": "cancelled", "says": "interrupted"},
    Kind.STOPPED: {**_ENDED, "state": "failed", "says": "ganger stop"},
    Kind.SERVER_AWAY: {},
    Kind.SERVER_AWAY_RANK_KILLED: _KILLED,
    Kind.SERVER_GONE: {"state": "failed", "resumes": True},
    Kind.CHECKPOINT_TRUNCATED: _DAMAGED,
    Kind.CHECKPOINT_FLIPPED: _DAMAGED,
    Kind.CHECKPOINTS_ALL_DAMAGED: _DAMAGED,
    Kind.DISK_FULL: {**_FAILED, **_NO_ROOM, "attempts": 4, "resumes": True},
    Kind.DISK_FULL_FOR_A_WHILE: {**_NO_ROOM, "attempts": 2},
}
#: A loss that is NaN on one rank stops all of them, and each of them may be the first to say so.
_NAMES_RANK = OF_A_RANK - {Kind.LOSS_NAN}
