"""The plan of one supervised job: which processes to start, with what, and which limits to hold them to.

This is what the supervisor reads (`job.json`). It knows nothing of models or data: what a process shall do is in
`payload`, which only `training.worker` and the engine read.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from training.policy.patterns import TreatAs

SCHEMA_VERSION: Literal[1] = 1


class _Plan(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ProcessPlan(_Plan):
    """One process of a gang.

    `argv` and the values of `env` may hold `{port:NAME}`; the launcher puts a free port of the host in its place, the
    same for all ranks, fresh at every attempt.
    """

    rank: int
    local_rank: int = 0
    role: str = "worker"
    """`chief`, `worker`, `ps`, `scheduler`, `server`, `stage 0` or the name of a step."""
    host: str = "127.0.0.1"
    argv: tuple[str, ...]
    env: dict[str, str] = {}
    """What is added to the inherited environment. Never a secret: this is written to disk."""
    threads: int = 1
    service: bool = False
    """A process that serves and never ends by itself; ended when all others are done."""
    ready_on: Literal["event", "output", "start"] = "event"
    """What tells that the process has joined: its `ready` event, its first output, or that it was started. Services and
    scripts that know nothing of events need one of the latter two."""
    turn: int = 0
    """When it begins, where a job is brought up one by one: it waits until its turn is called."""
    tracks: bool = False
    """Talks to the tracking server itself (the registry): keeps that server's credentials in its environment."""

    @property
    def tells_steps(self) -> bool:
        """Whether its silence says something while others speak; scripts know nothing of events."""
        return self.ready_on == "event"

    @property
    def name(self) -> str:
        """How logs and errors call the process.

        >>> ProcessPlan(rank=1, role="worker", argv=("true",)).name
        'rank 1 (worker)'
        """
        return f"rank {self.rank} ({self.role})"


class FailurePatternPlan(_Plan):
    """A pattern of the spec: failures in whose words it is found are of the class `treat_as`."""

    pattern: str
    treat_as: TreatAs


class LimitsPlan(_Plan):
    """Deadlines of a job, all in seconds, and after which failures it may be restarted how often."""

    start_timeout_s: float = 120.0
    stall_timeout_s: float = 300.0
    stop_grace_s: float = 10.0
    finish_grace_s: float = 60.0
    """How long the other ranks may go on after the first one ended well."""
    lease_s: float = 60.0
    """The job ends itself when nobody has looked at it for so long."""
    timeout_s: float | None = None
    restarts: int = 0
    """After failures of the infrastructure."""
    user_restarts: int = 0
    """After failures of the user's code."""
    failure_patterns: tuple[FailurePatternPlan, ...] = ()


class TrackingPlan(_Plan):
    """What the tracker writes down for the job."""

    tracking_uri: str
    """May hold a user name, never a password (MLflow reads that from the environment)."""
    experiment: str
    run_name: str
    params: dict[str, str] = {}
    tags: dict[str, str] = {}


class GangPlan(_Plan):
    """Processes of a job that it may go on with after it lost ranks."""

    processes: tuple[ProcessPlan, ...]
    ports: tuple[str, ...] = ()

    @property
    def world_size(self) -> int:
        """Number of ranks, services not among them."""
        return sum(not process.service for process in self.processes)


class JobPlan(_Plan):
    """A job: processes that start together and succeed or fail together."""

    schema_version: Literal[1] = SCHEMA_VERSION
    run_id: str
    name: str
    processes: tuple[ProcessPlan, ...]
    ports: tuple[str, ...] = ()
    """Names of the ports to choose."""
    smaller: tuple[GangPlan, ...] = ()
    """What it may go on with after it lost ranks, largest first."""
    slots: int = 0
    """Slots of the machine that it needs, all at once; the supervisor holds them as long as the gang lives."""
    queue_timeout_s: float | None = None
    """How long it may wait for them."""
    limits: LimitsPlan = LimitsPlan()
    outputs: tuple[str, ...] = ()
    """Paths that must exist, newer than the start of the job, for it to count as succeeded."""
    tracking: TrackingPlan | None = None
    payload: dict[str, Any] = {}
    """For `training.worker`: `task` and what the task needs. Never a secret."""

    @property
    def world_size(self) -> int:
        """Number of ranks, services not among them."""
        return sum(not process.service for process in self.processes)

    def shrink(self, world_size: int) -> JobPlan:
        """Return the plan that goes on with `world_size` ranks, which one of `smaller` must have."""
        gang = next(gang for gang in self.smaller if gang.world_size == world_size)
        rest = tuple(other for other in self.smaller if other.world_size < world_size)
        return self.model_copy(update={"processes": gang.processes, "ports": gang.ports, "smaller": rest})
