"""Finds and ends processes that bear the mark of a job. By their environment, never by name; by pid and start time."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from training import settings

if TYPE_CHECKING:
    import psutil

_GRACE_S = 1.0
#: A process may start another one while it is being ended.
_ROUNDS = 5


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
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit() or int(entry.name) in spared:
            continue
        variables = _read_environ(entry.name)
        if any(_bears(variable, wanted) for variable in variables) and _is_in(variables, job_dir):
            try:
                found.append(psutil.Process(int(entry.name)))  # holds pid and start time: never signals a successor
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


def _read_environ(pid: str) -> list[bytes]:
    """Return the variables of a process; none for zombies and processes of other people."""
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []
