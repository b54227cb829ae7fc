"""What can be done to a training, and when: values only."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Kind(enum.StrEnum):
    """What is done."""

    RANK_KILLED = "rank killed"
    RANK_KILLED_AGAIN = "rank killed, and once more in the next attempt"
    RANK_KILLED_FOR_GOOD = "rank killed, no restart allowed"
    RANK_CRASHED = "rank crashed (SIGSEGV)"
    RANK_STOPPED = "rank stopped (SIGSTOP)"
    RANK_EXITS = "user code exits with 7"
    RANK_RAISES = "user code raises"
    RANK_OUT_OF_MEMORY = "user code is out of memory"
    LOSS_NAN = "loss is NaN"
    SUPERVISOR_KILLED = "supervisor killed"
    TASK_KILLED = "task process killed, resumed at once"
    TASK_AND_RANK_KILLED = "task process and rank killed, resumed at once"
    TASK_ABANDONED = "task process killed, nobody comes back"
    AIRFLOW_TASK_KILLED = "Airflow task process killed"
    INTERRUPTED = "Ctrl-C"
    STOPPED = "ganger stop"
    SERVER_AWAY = "MLflow server killed, back later"
    SERVER_AWAY_RANK_KILLED = "MLflow server and rank killed, server back later"
    SERVER_GONE = "MLflow server killed until after the end"
    CHECKPOINT_TRUNCATED = "newest checkpoint truncated, rank killed"
    CHECKPOINT_FLIPPED = "a byte of the newest checkpoint flipped, rank killed"
    CHECKPOINTS_ALL_DAMAGED = "all checkpoints damaged, rank killed"
    DISK_FULL = "disk of the checkpoints full"
    DISK_FULL_FOR_A_WHILE = "disk of the checkpoints full until the restart"


#: Kinds that are done to a rank, or by the code that it runs.
OF_A_RANK = frozenset(
    {
        Kind.RANK_KILLED,
        Kind.RANK_KILLED_AGAIN,
        Kind.RANK_KILLED_FOR_GOOD,
        Kind.RANK_CRASHED,
        Kind.RANK_STOPPED,
        Kind.RANK_EXITS,
        Kind.RANK_RAISES,
        Kind.RANK_OUT_OF_MEMORY,
        Kind.LOSS_NAN,
        Kind.TASK_AND_RANK_KILLED,
        Kind.SERVER_AWAY_RANK_KILLED,
        Kind.CHECKPOINT_TRUNCATED,
        Kind.CHECKPOINT_FLIPPED,
        Kind.CHECKPOINTS_ALL_DAMAGED,
    }
)


class Stage(enum.StrEnum):
    """Where a training is, by what its run folder tells."""

    STARTING = "starting"
    """Its ranks run, and none has joined."""
    STEP = "step"
    """It has told of a step."""
    CHECKPOINT = "checkpoint"
    """It writes the checkpoint of a step."""
    SAVING = "saving"
    """All steps are done, the chief saves the model."""


@dataclass(frozen=True, slots=True)
class Moment:
    """When something is done.

    Attributes:
        stage: Where the training is then.
        step: Of which step; 0 where that says nothing.
        attempt: In which attempt of the gang.
    """

    stage: Stage
    step: int = 0
    attempt: int = 1

    def __str__(self) -> str:
        step = f" {self.step}" if self.step else ""
        attempt = f" of attempt {self.attempt}" if self.attempt > 1 else ""
        return f"{self.stage}{step}{attempt}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One row of the table: what is done to one training.

    Attributes:
        number: Its place in the drawing, from 1.
        kind: What is done.
        rank: The rank that it is done to, or whose code does it.
        moment: When.
        second: When something is done for the second time or undone, where the kind says so.
        place: From 0 to 1: where in a file a byte is changed, or where it ends.
    """

    number: int
    kind: Kind
    rank: int
    moment: Moment
    second: Moment | None = None
    place: float = 0.5
