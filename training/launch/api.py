"""What every launcher can do. The supervisor knows no more of a backend than this."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from training.plan.job import JobPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchOrder:
    """One attempt at a job.

    Attributes:
        plan: What to start.
        folder: The job folder, which the ranks read their plan from.
        mark: What all processes bear in their environment, to be found by.
        attempt: Number of the attempt, from 1.
        env: What is added to the environment of all ranks, such as the id of the MLflow run.
    """

    plan: JobPlan
    folder: Path
    mark: str
    attempt: int = 1
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """Bytes that a rank wrote."""

    rank: int
    stream: Literal["out", "err"]
    data: bytes


class Gang(Protocol):
    """The running processes of one attempt."""

    @property
    def pids(self) -> Mapping[int, int | None]:
        """Rank to process id on its host; None where the backend does not tell."""

    @property
    def ports(self) -> Mapping[str, int]:
        """Name to the port that was chosen for this attempt."""

    @property
    def is_drained(self) -> bool:
        """Whether all that was ever written has been read and nobody can write more."""

    def wait(self, timeout_s: float) -> None:
        """Return when there is something to read, a process has ended, or the time is over."""

    def poll(self) -> dict[int, int]:
        """Return the exit codes of the processes that have ended, negative for a signal.

        What such a process wrote is there to `read` afterwards.
        """

    def read(self) -> list[Output]:
        """Return what has been written since the last call. Never blocks."""

    def signal(self, rank: int, signum: int) -> None:
        """Send a signal to a rank and the processes of its group, also after the rank itself has ended."""

    def dump_stacks(self, rank: int) -> bool:
        """Have a running rank write the stacks of its threads; return whether it can. It lives on."""

    def is_stopped(self, rank: int) -> bool:
        """Whether the kernel holds the rank stopped (SIGSTOP, a debugger); False where the backend does not tell."""

    def close(self) -> None:
        """End what is left at once, forget the processes, give back the ports. Safe to repeat."""


class Launcher(Protocol):
    """Starts gangs on one kind of backend."""

    def start(self, order: LaunchOrder) -> Gang:
        """Start all processes of the order, or none.

        Raises:
            PreflightError: A program or a host is not there; a retry would find the same.
            LaunchError: The processes cannot be started now.
        """
