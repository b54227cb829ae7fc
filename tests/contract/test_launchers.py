"""What every launcher must do, played against the fake one and the real one."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

import pytest
from fakes import puppet
from fakes.launcher import FakeGang, FakeLauncher

from training.launch.api import Gang, LaunchOrder
from training.launch.local import LocalLauncher
from training.plan.job import JobPlan, ProcessPlan

LIMIT_S = 10.0


class World(Protocol):
    """A gang, and a way to have its ranks do things."""

    gang: Gang

    def say(self, rank: int, text: str) -> None: ...
    def crash(self, rank: int, exit_code: int) -> None: ...
    def hang(self, rank: int) -> None: ...
    def close(self) -> None: ...


class FakeWorld:
    def __init__(self, path: Path, ranks: int) -> None:
        gang = FakeLauncher().start(_order(path, [("fake",)] * ranks))
        assert isinstance(gang, FakeGang)
        self.gang = self._fake = gang

    def say(self, rank: int, text: str) -> None:
        self._fake.say(rank, text)

    def crash(self, rank: int, exit_code: int) -> None:
        self._fake.crash(rank, exit_code)

    def hang(self, rank: int) -> None:
        self._fake.hang(rank)
        self._fake.say(rank, "hanging")

    def close(self) -> None:
        self.gang.close()


class LocalWorld:
    def __init__(self, path: Path, ranks: int) -> None:
        fifos = [path / f"fifo-{rank}" for rank in range(ranks)]
        for fifo in fifos:
            os.mkfifo(fifo)
        commands = [(sys.executable, "-I", "-S", puppet.__file__, str(fifo)) for fifo in fifos]
        self.gang = LocalLauncher().start(_order(path, commands))
        self._strings = [fifo.open("w", buffering=1) for fifo in fifos]

    def say(self, rank: int, text: str) -> None:
        self._strings[rank].write(f"say {text}\n")

    def crash(self, rank: int, exit_code: int) -> None:
        verb = f"signal {-exit_code}" if exit_code < 0 else f"exit {exit_code}"
        self._strings[rank].write(f"{verb}\n")

    def hang(self, rank: int) -> None:
        self._strings[rank].write("hang\n")

    def close(self) -> None:
        self.gang.close()
        for string in self._strings:
            string.close()


def _order(path: Path, commands: list[tuple[str, ...]]) -> LaunchOrder:
    processes = tuple(ProcessPlan(rank=rank, argv=argv) for rank, argv in enumerate(commands))
    plan = JobPlan(run_id="contract", name="job", processes=processes, ports=("a", "b"))
    return LaunchOrder(plan=plan, folder=path, mark=f"contract-{path.name}/job")


@pytest.fixture(params=[FakeWorld, LocalWorld], ids=["fake", "local"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    made: World = request.param(tmp_path, 2)
    yield made
    made.close()


def _until(done: Callable[[], bool], gang: Gang) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not done():
        assert time.monotonic() < deadline, "it did not happen in time"
        gang.wait(0.1)


def _hear(world: World, rank: int, text: bytes) -> bytes:
    heard = bytearray()

    def done() -> bool:
        for output in world.gang.read():
            heard.extend(output.data if output.rank == rank else b"")
        return text in heard

    _until(done, world.gang)
    return bytes(heard)


def test_all_ranks_have_a_pid_and_ports_differ(world: World) -> None:
    assert set(world.gang.pids) == {0, 1}
    assert len(set(world.gang.ports.values())) == 2


def test_output_comes_with_its_rank(world: World) -> None:
    world.say(1, "hello")
    assert _hear(world, 1, b"hello\n") == b"hello\n"


@pytest.mark.parametrize("exit_code", [0, 7, -9])
def test_exit_codes_are_told_as_often_as_asked(world: World, exit_code: int) -> None:
    world.crash(1, exit_code)
    _until(lambda: 1 in world.gang.poll(), world.gang)
    assert world.gang.poll() == {1: exit_code}


def test_what_an_ended_rank_wrote_is_there_to_read(world: World) -> None:
    world.say(0, "last words")
    world.crash(0, 3)
    _until(lambda: 0 in world.gang.poll(), world.gang)
    assert b"".join(output.data for output in world.gang.read()) == b"last words\n"


def test_sigterm_ends_a_rank(world: World) -> None:
    world.say(0, "up")
    _hear(world, 0, b"up\n")
    world.gang.signal(0, signal.SIGTERM)
    _until(lambda: 0 in world.gang.poll(), world.gang)
    assert world.gang.poll() == {0: -signal.SIGTERM}


def test_a_hanging_rank_needs_sigkill(world: World) -> None:
    world.hang(0)
    _hear(world, 0, b"hanging\n")
    world.gang.signal(0, signal.SIGTERM)
    world.gang.wait(0.1)
    assert world.gang.poll() == {}
    world.gang.signal(0, signal.SIGKILL)
    _until(lambda: 0 in world.gang.poll(), world.gang)
    assert world.gang.poll() == {0: -signal.SIGKILL}


def test_a_drained_gang_has_nothing_more_to_say(world: World) -> None:
    assert not world.gang.is_drained
    world.say(0, "end")
    world.crash(0, 0)
    world.crash(1, 0)
    _until(lambda: len(world.gang.poll()) == 2, world.gang)
    _until(lambda: not world.gang.read() and world.gang.is_drained, world.gang)


def test_an_ended_rank_can_be_signalled_without_harm(world: World) -> None:
    world.crash(0, 0)
    _until(lambda: 0 in world.gang.poll(), world.gang)
    world.gang.signal(0, signal.SIGTERM)
    assert world.gang.poll() == {0: 0}


def test_close_ends_everything_and_may_be_repeated(world: World) -> None:
    world.hang(1)
    world.gang.close()
    world.gang.close()


def test_wait_returns_when_nothing_happens(world: World) -> None:
    world.gang.wait(0.01)
    assert world.gang.poll() == {}
