"""Processes of a job are found by their mark, also in the moments in which they are hard to see."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes.jobs import wait_until

from training import settings
from training.run import sweep as sweeping
from training.run.sweep import find_marked, sweep

_MARK = f"sweep-{os.getpid()}/job"
#: A shell that becomes itself, over and over.
_EXECS = 'exec /bin/sh -c "$0" "$0"'
_READS = 3_000


@pytest.fixture
def restless() -> Iterator[int]:
    env = {settings.MARK: _MARK}
    process = subprocess.Popen(["/bin/sh", "-c", _EXECS, _EXECS], env=env, stdin=subprocess.DEVNULL)
    yield process.pid
    process.kill()
    process.wait()


def test_a_process_is_seen_in_the_midst_of_execve(restless: int) -> None:
    """K16: its environment reads as empty then; one that hid behind that would be left over."""
    wanted = f"{settings.MARK}={_MARK}".encode()
    wait_until(lambda: wanted in sweeping._read_environ(restless))
    assert all(wanted in sweeping._read_environ(restless) for _ in range(_READS))


def test_a_process_that_never_rests_is_ended(restless: int) -> None:
    """K16."""
    wait_until(lambda: [process.pid for process in find_marked(_MARK)] == [restless])
    assert sweep(_MARK, grace_s=0.2) == [restless]
    assert find_marked(_MARK) == []


def test_a_child_whose_parent_ends_while_it_is_looked_for_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """K16: a double fork between two looks at /proc."""
    listings = [["1", "20", "self"], ["1", "21", "self"], ["1", "21", "self"]]
    monkeypatch.setattr(os, "scandir", lambda path: [Path(name) for name in listings.pop(0)])
    assert list(sweeping._iterate_pids()) == [1, 20, 21]


@pytest.mark.parametrize("env", [{}, None], ids=["empty", "inherited"])
def test_other_processes_are_left_alone(env: dict[str, str] | None) -> None:
    """Without variables of its own there is nothing to wait for."""
    other = subprocess.Popen([sys.executable, "-I", "-S", "-c", "import time; time.sleep(60)"], env=env)
    try:
        assert sweep(_MARK) == []
        assert other.poll() is None
    finally:
        other.send_signal(signal.SIGKILL)
        other.wait()
