"""The local launcher: every rank a child of the supervisor, in a session of its own, dying with it."""

from __future__ import annotations

import contextlib
import os
import re
import selectors
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from training.errors import LaunchError, PreflightError
from training.launch.api import Gang, LaunchOrder, Output
from training.launch.environment import render_argv, render_rank_environment
from training.launch.ports import PortClaim, claim_ports
from training.plan.job import ProcessPlan

_GUARD = Path(__file__).with_name("guard.py")
_CHUNK = 1 << 16
#: So much is read from one stream in a row; then others have their turn, and the pipe holds the writer back.
_CHUNKS_PER_READ = 16
#: A process in an uninterruptible call (a dead network disk) outlives even SIGKILL; it is not waited for any longer.
_REAP_S = 5.0
_Stream = Literal["out", "err"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Command:
    process: ProcessPlan
    argv: list[str]
    env: dict[str, str]


class LocalLauncher:
    """Starts gangs on this machine. To be used from the main thread: a rank dies with the *thread* that started it."""

    def start(self, order: LaunchOrder) -> Gang:
        """Start all processes of the order, or none.

        Raises:
            PreflightError: A program is not there, or a host is not this one.
            LaunchError: The machine has no port or no process left.
        """
        _check_hosts(order)
        claim = claim_ports(order.plan.ports)
        try:
            commands = [_render_command(order, process, claim.ports) for process in order.plan.processes]
        except BaseException:
            claim.release()
            raise
        gang = LocalGang(claim)
        try:
            for command in commands:
                gang.add(command)
        except OSError as error:
            gang.close()
            raise LaunchError(f"{command.process.name} could not be started: {error.strerror}.") from error
        return gang


def _check_hosts(order: LaunchOrder) -> None:
    here = {"127.0.0.1", "::1", "localhost", "", socket.gethostname()}
    for process in order.plan.processes:
        if process.host not in here:
            raise PreflightError(
                f"{process.name} must run on this machine with the backend `local`. Received: host {process.host!r}. "
                "Choose another cluster.backend."
            )


def _render_command(order: LaunchOrder, process: ProcessPlan, ports: Mapping[str, int]) -> _Command:
    env = render_rank_environment(order, process, os.environ, ports)
    argv = render_argv(process, ports)
    if shutil.which(argv[0], path=env.get("PATH")) is None:
        raise PreflightError(
            f"the program of {process.name} must exist and be executable. Received: {argv[0]}. "
            "If it belongs to an engine environment: ganger env build"
        )
    return _Command(process=process, argv=argv, env=env)


@dataclass(slots=True)
class _Rank:
    popen: subprocess.Popen[bytes]
    pidfd: int | None
    exit_code: int | None = None
    streams: dict[int, _Stream] = field(default_factory=dict)


class LocalGang:
    """The running processes of one attempt on this machine."""

    def __init__(self, claim: PortClaim) -> None:
        self._claim = claim
        self._ranks: dict[int, _Rank] = {}
        self._selector = selectors.DefaultSelector()

    def add(self, command: _Command) -> None:
        """Start one more process.

        Raises:
            OSError: The machine cannot start it.
        """
        popen = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_GUARD), str(os.getpid()), *command.argv],
            env=command.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        rank = _Rank(popen, None)
        self._ranks[command.process.rank] = rank
        rank.pidfd = os.pidfd_open(popen.pid)
        self._selector.register(rank.pidfd, selectors.EVENT_READ)
        streams: list[tuple[_Stream, int]] = [("out", _fileno(popen.stdout)), ("err", _fileno(popen.stderr))]
        for stream, descriptor in streams:
            os.set_blocking(descriptor, False)
            rank.streams[descriptor] = stream
            self._selector.register(descriptor, selectors.EVENT_READ)

    @property
    def pids(self) -> Mapping[int, int | None]:
        """Rank to process id."""
        return {number: rank.popen.pid for number, rank in self._ranks.items()}

    @property
    def ports(self) -> Mapping[str, int]:
        """Name to the port that was chosen for this attempt."""
        return self._claim.ports

    @property
    def is_drained(self) -> bool:
        """Whether all pipes are at their end."""
        return not any(rank.streams for rank in self._ranks.values())

    def wait(self, timeout_s: float) -> None:
        """Return when there is something to read, a process has ended, or the time is over."""
        self._selector.select(timeout_s)

    def poll(self) -> dict[int, int]:
        """Return the exit codes of the processes that have ended.

        They are left as zombies until `close`, so that neither their pid nor their group can become somebody else's
        while signals may still be sent to it.
        """
        for rank in self._ranks.values():
            if rank.exit_code is None:
                rank.exit_code = _peek_exit_code(rank.popen.pid)
                if rank.exit_code is not None:
                    self._forget_pidfd(rank)
        return {number: rank.exit_code for number, rank in self._ranks.items() if rank.exit_code is not None}

    def read(self) -> list[Output]:
        """Return what has been written since the last call."""
        outputs: list[Output] = []
        for number, rank in self._ranks.items():
            for descriptor, stream in list(rank.streams.items()):
                data = self._read_stream(rank, descriptor)
                if data:
                    outputs.append(Output(rank=number, stream=stream, data=data))
        return outputs

    def signal(self, rank: int, signum: int) -> None:
        """Send a signal to the process group of a rank."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._ranks[rank].popen.pid, signum)

    def dump_stacks(self, rank: int) -> bool:
        """Send SIGUSR1 to a rank that catches it (`training.worker` does); it would end any other."""
        pid = self._ranks[rank].popen.pid
        catches = int(_read_status(pid).get("SigCgt", "0"), 16) >> (signal.SIGUSR1 - 1) & 1
        if not catches:
            return False
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGUSR1)
            os.kill(pid, signal.SIGCONT)  # a stopped process gets signals only when it goes on
        return True

    def is_stopped(self, rank: int) -> bool:
        """Whether the kernel holds the rank stopped."""
        return _read_status(self._ranks[rank].popen.pid).get("State", "").startswith(("T", "t"))

    def close(self) -> None:
        """End what is left of the groups at once, reap the ranks, close the pipes, give back the ports."""
        for number, rank in self._ranks.items():
            if rank.popen.returncode is None:
                self.signal(number, signal.SIGKILL)
        for rank in self._ranks.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                rank.popen.wait(_REAP_S)
            self._forget_pidfd(rank)
            for stream in (rank.popen.stdout, rank.popen.stderr):
                if stream is not None:
                    stream.close()
            rank.streams.clear()
        self._selector.close()
        self._claim.release()

    def _read_stream(self, rank: _Rank, descriptor: int) -> bytes:
        chunks: list[bytes] = []
        while len(chunks) < _CHUNKS_PER_READ:
            try:
                chunk = os.read(descriptor, _CHUNK)
            except BlockingIOError:
                break
            if not chunk:
                self._selector.unregister(descriptor)
                del rank.streams[descriptor]
                break
            chunks.append(chunk)
        return b"".join(chunks)

    def _forget_pidfd(self, rank: _Rank) -> None:
        """Stop watching the process: the descriptor of an ended one would wake every `wait`."""
        if rank.pidfd is not None:
            with contextlib.suppress(KeyError, ValueError):
                self._selector.unregister(rank.pidfd)
            os.close(rank.pidfd)
            rank.pidfd = None


def _fileno(stream: object) -> int:
    return stream.fileno()  # type: ignore[attr-defined, no-any-return]


def _peek_exit_code(pid: int) -> int | None:
    """Return the exit code of a child without reaping it, negative for a signal; None while it runs."""
    ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    if ended is None:
        return None
    return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status


def _read_status(pid: int) -> dict[str, str]:
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return {}
    return dict(re.findall(r"^(\w+):\s*(.*)$", text, re.MULTILINE))
