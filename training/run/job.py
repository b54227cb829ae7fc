"""What is known of a running and of an ended job."""

from __future__ import annotations

import enum
from typing import Any

from pydantic import ConfigDict

from training.run.folder import FileModel


class JobState(enum.StrEnum):
    """Life stages of a job."""

    QUEUED = "queued"
    """Waits for slots of its machine; nothing of it runs."""
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_over(self) -> bool:
        """Whether nothing will change any more."""
        return self in (JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED)


class _File(FileModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class SupervisorRef(_File):
    """Which process supervises; pid and start time together name it for good."""

    pid: int
    started_at: float
    """As the kernel counts (psutil's `create_time`), seconds since the epoch."""
    host: str = ""
    """Name of the machine it runs on: pid and start time say something there only."""


class RankStatus(_File):
    """What is known of one rank of the current attempt."""

    rank: int
    name: str
    host: str
    pid: int | None = None
    ready: bool = False
    exit_code: int | None = None
    """Negative: ended by that signal."""
    step: int = 0
    last_line: str = ""


class JobStatus(_File):
    """The current state; rewritten at every change of state and every second or so while steps go on."""

    state: JobState
    attempt: int = 1
    ranks: tuple[RankStatus, ...] = ()
    epoch: int = 0
    epochs: int = 0
    step: int = 0
    metrics: dict[str, float] = {}


class FailureHeadline(_File):
    """The first failure of an attempt, which is the one that explains the others."""

    rank: int | None = None
    """None: the failure is of the job as a whole, such as a deadline."""
    name: str = ""
    host: str = ""
    kind: str
    """Class name of the error in `training.errors`: decides about retries."""
    message: str
    """One sentence."""
    exit_code: int | None = None
    step: int | None = None
    detail: str = ""
    """Traceback, or the last lines of the rank."""


class JobResult(_File):
    """How a job ended."""

    state: JobState
    started_at: float
    ended_at: float
    attempts: int = 1
    failure: FailureHeadline | None = None
    exit_codes: dict[int, int | None] = {}
    values: dict[str, Any] = {}
    """The `result` event of the lowest rank that sent one."""
    mlflow_run_id: str | None = None
    tracking_closed: bool = False
    """Whether the MLflow run was given its final status and nothing waits in the spool; the teardown looks at it."""
    notes: tuple[str, ...] = ()
    """What a person should know though it failed nothing: late ranks, spooled metrics, ended leftovers."""


class TrackingRef(_File):
    """The MLflow run of a training."""

    tracking_uri: str
    experiment_id: str
    run_id: str
    model_uri: str | None = None
    """`models:/m-…` or `runs:/…/model` of the logged model."""
