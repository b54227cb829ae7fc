"""Ends the services with all their processes."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import psutil

from training.serve.lock import services_lock
from training.serve.record import ServiceRef, Services, ServicesFolder

GRACE_S = 12.0
#: After this share of the grace period a second SIGTERM: to Airflow's scheduler it says not to wait for running tasks.
_FIRST_SHARE = 0.25
#: What a job's supervisor is started as. Jobs outlive Airflow by design, and end by themselves.
SUPERVISOR = "training.run.supervisor"


def stop_services(home: Path, grace_s: float = GRACE_S) -> list[str]:
    """End what was started for `home`, and return the names of the services that still lived. Safe to repeat.

    Jobs are not ended: their supervisors notice that nobody follows them and end by themselves (`limits.lease_s`).
    """
    folder = ServicesFolder(home)
    if not folder.record.exists():
        return []
    with services_lock(folder):
        services = Services.read(folder.record)
        stopped = end_processes(services, grace_s) if services else []
        folder.record.unlink(missing_ok=True)
    return stopped


def end_processes(services: Services, grace_s: float = GRACE_S) -> list[str]:
    """Ask every service to end, then end what is left of them after `grace_s`; return the services' names."""
    living = {ref.name: found for ref in services.processes if (found := ref.find_process())}
    trees = [member for process in living.values() for member in walk_tree(process)]
    waiting = list(living.values())
    for share in (_FIRST_SHARE, 1 - _FIRST_SHARE):
        for process in waiting:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.terminate()
        _, waiting = psutil.wait_procs(waiting, timeout=grace_s * share)
    left = {*trees, *(member for ref in services.processes for member in find_session(ref))}
    for process in left:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(list(left), timeout=grace_s)
    return list(living)


def walk_tree(process: psutil.Process) -> Iterator[psutil.Process]:
    """Yield `process` and its descendants, but neither supervisors of jobs nor what these started."""
    with contextlib.suppress(psutil.NoSuchProcess):
        if SUPERVISOR in process.cmdline():
            return
        yield process
        for child in process.children():
            yield from walk_tree(child)


def find_session(ref: ServiceRef) -> Iterator[psutil.Process]:
    """Yield the processes of the session that a service leads, also when the service itself is dead.

    The kernel gives no new process the number of a session that still has members.
    """
    if psutil.pid_exists(ref.pid) and ref.find_process() is None:
        return
    for pid in psutil.pids():
        with contextlib.suppress(ProcessLookupError, PermissionError, psutil.NoSuchProcess):
            if os.getsid(pid) == ref.pid:
                yield psutil.Process(pid)
