"""Children that ranks left behind come to the supervisor, which ends and reaps them, whatever mark they bear."""

from __future__ import annotations

import contextlib
import ctypes
import os
from typing import TYPE_CHECKING

from training.run.sweep import end_processes

if TYPE_CHECKING:
    import psutil

_PR_SET_CHILD_SUBREAPER = 36  # <linux/prctl.h>
#: A process may start another one while it is being ended.
_ROUNDS = 5


def become_subreaper() -> None:
    """Have the kernel make this process the parent of all descendants that lose theirs, instead of init."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_orphans(grace_s: float = 1.0) -> list[int]:
    """End the adopted children and their descendants; return their pids. To be called when no rank is left."""
    ended: list[int] = []
    for _ in range(_ROUNDS):
        orphans = [process for process in _find_adopted() if process.status() != "zombie"]
        if not orphans:
            break
        end_processes(orphans, grace_s)
        ended.extend(process.pid for process in orphans)
    reap_orphans(spared=frozenset())
    return ended


def reap_orphans(spared: frozenset[int]) -> None:
    """Reap adopted children that have ended; those in `spared` are reaped by whoever started them."""
    for process in _find_adopted():
        if process.pid not in spared:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(process.pid, os.WNOHANG)


def _find_adopted() -> list[psutil.Process]:
    """Return the descendants in another session than ours: each rank leads one. Children of our own share ours."""
    import psutil

    found = []
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(ProcessLookupError):
            if os.getsid(process.pid) != os.getsid(0):
                found.append(process)
    return found
