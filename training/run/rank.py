"""What a rank process knows of itself, and how it talks to its supervisor. Standard library and pydantic only."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from training import settings
from training.plan.job import JobPlan
from training.run.event import (
    Checkpoint,
    Done,
    Epoch,
    Event,
    Failure,
    Heartbeat,
    Measured,
    Model,
    Ready,
    Result,
    Step,
    render_event,
)


@dataclass(slots=True, kw_only=True)
class RankContext:
    """Given to the task that a rank process runs.

    Attributes:
        rank: Number of the process in its gang, from 0.
        world_size: Number of processes in the gang.
        threads: Computation threads that this process may use.
        devices: Devices that this process computes on, each a replica.
        service: Whether it serves the ranks until it is ended.
        turn: When it begins, where the gang is brought up one by one.
        payload: What the plan says to do.
        reached: The last step that ended; of most, nobody is told.
    """

    rank: int
    local_rank: int = 0
    world_size: int
    role: str = "worker"
    threads: int = 1
    devices: int = 1
    service: bool = False
    turn: int = 0
    payload: dict[str, Any] = field(default_factory=dict)
    reached: int = 0

    @classmethod
    def read(cls) -> RankContext:
        """Return the context of this process, from the job folder that its environment names."""
        plan = JobPlan.model_validate_json((Path(os.environ[settings.JOB_DIR]) / "job.json").read_bytes())
        process = plan.processes[int(os.environ[settings.RANK])]
        return cls(
            rank=process.rank,
            local_rank=process.local_rank,
            world_size=len([p for p in plan.processes if not p.service]),
            role=process.role,
            threads=process.threads,
            devices=plan.payload.get("devices", 1),
            service=process.service,
            turn=process.turn,
            payload=plan.payload,
        )

    @property
    def is_chief(self) -> bool:
        """Whether this rank writes what is written once."""
        return self.rank == 0

    def emit(self, event: Event) -> None:
        """Tell the supervisor. One `write` call, so that lines of threads do not mix."""
        sys.stdout.flush()
        os.write(1, render_event(event).encode())

    def ready(self, **fields: Any) -> None:
        """Say that this rank has joined its peers."""
        self.emit(Ready(rank=self.rank, pid=os.getpid(), threads=self.threads, **fields))

    def step(self, **fields: Any) -> None:
        """Say that a step ended."""
        self.emit(Step(rank=self.rank, **fields))

    def epoch(self, **fields: Any) -> None:
        """Say that an epoch ended."""
        self.emit(Epoch(rank=self.rank, **fields))

    def measured(self, *, step: int, metrics: dict[str, float]) -> None:
        """Say what was measured of the gang at work."""
        self.emit(Measured(rank=self.rank, step=step, metrics=metrics))

    def checkpoint(self, *, step: int, path: Path) -> None:
        """Say that a complete checkpoint lies at `path`."""
        self.emit(Checkpoint(rank=self.rank, step=step, path=str(path)))

    def heartbeat(self, doing: str = "") -> None:
        """Say that this rank is alive outside of steps."""
        self.emit(Heartbeat(rank=self.rank, doing=doing))

    def model(self, path: Path) -> None:
        """Say that a model in MLflow's format lies at `path`."""
        self.emit(Model(rank=self.rank, path=str(path)))

    def result(self, values: dict[str, Any]) -> None:
        """Hand `values`, small JSON, to whoever comes next."""
        self.emit(Result(rank=self.rank, values=values))

    def done(self) -> None:
        """Say that the task returned; a rank that ends before is taken for a failed one, whatever its exit code."""
        self.emit(Done(rank=self.rank))

    def failure(self, **fields: Any) -> None:
        """Explain the failure with which this rank is about to end."""
        self.emit(Failure(rank=self.rank, **fields))
