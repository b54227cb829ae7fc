"""A launcher without processes: tests say what its ranks do. Passes the same contract tests as the real one."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from training.errors import LaunchError
from training.launch.api import Gang, LaunchOrder, Output
from training.run.event import Done, Event, render_event


@dataclass
class FakeRank:
    exit_code: int | None = None
    hanging: bool = False
    stopped: bool = False
    signals: list[int] = field(default_factory=list)
    dumps: int = 0


class FakeGang:
    """Ranks that only do what they are told."""

    def __init__(self, order: LaunchOrder, port: int) -> None:
        self.order = order
        self.ranks = {process.rank: FakeRank() for process in order.plan.processes}
        self.closed = False
        self._ports = {name: port + index for index, name in enumerate(order.plan.ports)}
        self._outputs: list[Output] = []

    # What ranks do.

    def say(self, rank: int, line: str, stream: Literal["out", "err"] = "out") -> None:
        self.write(rank, f"{line}\n".encode(), stream)

    def write(self, rank: int, data: bytes, stream: Literal["out", "err"] = "out") -> None:
        self._outputs.append(Output(rank=rank, stream=stream, data=data))

    def tell(self, event: Event) -> None:
        self.write(event.rank, render_event(event).encode())

    def crash(self, rank: int, exit_code: int = 1) -> None:
        if self.ranks[rank].exit_code is None:
            self.ranks[rank].exit_code = exit_code

    def end(self, rank: int) -> None:
        """Its task is done."""
        self.tell(Done(rank=rank))
        self.crash(rank, 0)

    def hang(self, rank: int) -> None:
        """From now on only SIGKILL ends it."""
        self.ranks[rank].hanging = True

    def halt(self, rank: int) -> None:
        """As by SIGSTOP."""
        self.ranks[rank].stopped = True

    # What the supervisor does.

    @property
    def pids(self) -> Mapping[int, int | None]:
        return {rank: 1_000_000 + rank for rank in self.ranks}

    @property
    def ports(self) -> Mapping[str, int]:
        return self._ports

    @property
    def is_drained(self) -> bool:
        return not self._outputs and all(rank.exit_code is not None for rank in self.ranks.values())

    def wait(self, timeout_s: float) -> None:
        return

    def poll(self) -> dict[int, int]:
        return {number: rank.exit_code for number, rank in self.ranks.items() if rank.exit_code is not None}

    def read(self) -> list[Output]:
        outputs, self._outputs = self._outputs, []
        return outputs

    def signal(self, rank: int, signum: int) -> None:
        fake = self.ranks[rank]
        fake.signals.append(signum)
        if signum == signal.SIGCONT:
            fake.stopped = False
        if signum == signal.SIGKILL or (signum == signal.SIGTERM and not fake.hanging):
            self.crash(rank, -signum)

    def dump_stacks(self, rank: int) -> bool:
        self.ranks[rank].dumps += 1
        return True

    def is_stopped(self, rank: int) -> bool:
        return self.ranks[rank].stopped

    def close(self) -> None:
        self.closed = True
        for rank in self.ranks:
            self.crash(rank, -signal.SIGKILL)


class FakeLauncher:
    """Starts fake gangs, and keeps them for the test to play with."""

    def __init__(self) -> None:
        self.gangs: list[FakeGang] = []
        self.refusals: list[LaunchError] = []

    @property
    def gang(self) -> FakeGang:
        return self.gangs[-1]

    def start(self, order: LaunchOrder) -> Gang:
        if self.refusals:
            raise self.refusals.pop(0)
        self.gangs.append(FakeGang(order, port=20_000 + 100 * len(self.gangs)))
        return self.gang
