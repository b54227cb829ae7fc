"""Finds and ends processes that bear the mark of a job. By their environment, never by name; by pid and start time."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from training import settings

if TYPE_CHECKING:
    import psutil

_GRACE_S = 1.0
#: A process may start another one while it is being ended.
_ROUNDS = 5
#: Listings of /proc in one search; each looks only at what came since the one before.
_LISTINGS = 10
#: How long a process is waited for that is just becoming another program, and how often it is looked at.
_EXEC_S = 0.5
_EXEC_POLL_S = 0.001


def sweep(mark: str, *, job_dir: Path | None = None, grace_s: float = _GRACE_S) -> list[int]:
    """End every process that bears `mark`, and return their pids.

    They are asked (SIGTERM) and, `grace_s` seconds later, made to (SIGKILL). This process and its ancestors are spared.

    Args:
        mark: `run_id/job`, or `run_id/` for all jobs of a run.
        job_dir: Only processes of this job folder, where run ids of several home folders may be the same.
        grace_s: Seconds between asking and ending.
    """
    ended: list[int] = []
    for _ in range(_ROUNDS):
        found = find_marked(mark, job_dir=job_dir)
        if not found:
            break
        end_processes(found, grace_s)
        ended.extend(process.pid for process in found)
    return ended


def render_pids(pids: Sequence[int]) -> str:
    """Return pids in words.

    >>> render_pids([7]), render_pids([7, 8])
    ('process 7', 'processes 7, 8')
    """
    return f"process{'es' if len(pids) > 1 else ''} {', '.join(map(str, pids))}"


def find_marked(mark: str, *, job_dir: Path | None = None) -> list[psutil.Process]:
    """Return the running processes that bear `mark`, oldest first."""
    import psutil

    spared = {os.getpid(), *(parent.pid for parent in psutil.Process().parents())}
    wanted = f"{settings.MARK}={mark}".encode()
    found = []
    for pid in _iterate_pids():
        variables = _read_environ(pid) if pid not in spared else []
        if any(_bears(variable, wanted) for variable in variables) and _is_in(variables, job_dir):
            try:
                found.append(psutil.Process(pid))  # holds pid and start time: never signals a successor
            except psutil.NoSuchProcess:
                continue
    return sorted(found, key=lambda process: process.pid)


def end_processes(processes: list[psutil.Process], grace_s: float) -> None:
    """Ask processes to end, then end them. Returns when they are gone, or after some seconds of trying."""
    import psutil

    for process in processes:
        _try(process.terminate)
        _try(process.resume)  # a stopped process gets the signal only when it goes on
    _, alive = psutil.wait_procs(processes, timeout=grace_s)
    for process in alive:
        _try(process.kill)
    psutil.wait_procs(alive, timeout=5.0)


def _try(call: object) -> None:
    import psutil

    try:
        call()  # type: ignore[operator]
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return


def _bears(variable: bytes, wanted: bytes) -> bool:
    return variable.startswith(wanted) if wanted.endswith(b"/") else variable == wanted


def _is_in(variables: list[bytes], job_dir: Path | None) -> bool:
    return job_dir is None or f"{settings.JOB_DIR}={job_dir}".encode() in variables


def _iterate_pids() -> Iterator[int]:
    """Yield all pids, also those of processes that were started meanwhile.

    A process that forks and ends between being listed and being looked at would otherwise hide its child.
    """
    seen: set[int] = set()
    for _ in range(_LISTINGS):
        fresh = {int(entry.name) for entry in os.scandir("/proc") if entry.name.isdigit()} - seen
        if not fresh:
            return
        yield from sorted(fresh)
        seen |= fresh


def _read_environ(pid: int) -> list[bytes]:
    """Return the variables of a process; none for zombies and processes of other people."""
    deadline = time.monotonic() + _EXEC_S
    try:
        while True:
            content = Path(f"/proc/{pid}/environ").read_bytes()
            if content or not _may_have_environ(pid) or time.monotonic() > deadline:
                return content.split(b"\0")
            time.sleep(_EXEC_POLL_S)
    except OSError:
        return []


def _may_have_environ(pid: int) -> bool:
    """Whether a process whose environment reads as empty has one all the same.

    That is so in the midst of execve(2): the new program's memory is there, its environment is not yet, and the kernel
    tells `env_end` as 0. Seen here in 1 of 100 reads of a process that goes from program to program. Zombies and kernel
    threads have no memory; a program that was started without variables has `env_start` equal to `env_end`. Fields 23,
    50, 51 of proc_pid_stat(5), counted here from the third.
    """
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    memory, env_start, env_end = int(fields[20]), int(fields[47]), int(fields[48])
    return memory > 0 and (env_end == 0 or env_end > env_start)
