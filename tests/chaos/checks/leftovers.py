"""Is anything left: a process, a port, a slot of the machine?"""

from __future__ import annotations

import os
import time
from pathlib import Path

import psutil

from tests.chaos.site import Site
from tests.chaos.watched_run import WatchedRun
from training.run.slot_table import SlotTable
from training.run.sweep import find_marked

#: A supervisor ends a moment after its result is there.
_GRACE_S = 2.0
_POLL_S = 0.05


def check_leftovers(site: Site, run: WatchedRun) -> list[str]:
    """Check that no process of the run, and none that descends from this one, is left, and no port
    and no slot is held.

    This process must be a subreaper: what loses its parent comes to it, whatever mark it bears.
    """
    end = time.monotonic() + _GRACE_S
    while (problems := _find_all(site, run)) and time.monotonic() < end:
        time.sleep(_POLL_S)
    return problems


def _find_all(site: Site, run: WatchedRun) -> list[str]:
    return [*_find_processes(site, run), *_find_ports(run.ports()), *_find_slots(site)]


def _find_slots(site: Site) -> list[str]:
    held = [row.claim.job_id for row in SlotTable.here(site.home).read()]
    return [f"no slot may be held. Received: by {held}"] if held else []


def reap(spared: set[int]) -> None:
    """Reap the children that came to this process and have ended; those in `spared` have somebody who waits."""
    for child in psutil.Process().children():
        if child.pid not in spared and child.status() == psutil.STATUS_ZOMBIE:
            os.waitpid(child.pid, os.WNOHANG)


def _find_processes(site: Site, run: WatchedRun) -> list[str]:
    marked = [process.pid for process in find_marked(f"{run.folder.run_id}/")]
    spared = site.spared()
    reap(spared)
    found = [process for process in psutil.Process().children(recursive=True) if process.pid not in spared]
    descendants = [told for process in found if (told := _describe(process))]
    return [
        *([f"no process may bear the mark of the run. Received: {marked}"] if marked else []),
        *([f"no process may be left. Received: {'; '.join(descendants)}"] if descendants else []),
    ]


def _describe(process: psutil.Process) -> str:
    try:
        return f"{process.pid} {' '.join(process.cmdline())[:200]}"
    except psutil.NoSuchProcess:
        return ""


def _find_ports(ports: set[int]) -> list[str]:
    if not ports:
        return []
    held = {
        connection.laddr.port
        for connection in psutil.net_connections("tcp")
        if connection.status == psutil.CONN_LISTEN and connection.laddr.port in ports
    }
    names = Path("/proc/net/unix").read_text().split()
    claimed = {port for port in ports if f"@ganger-port-{port}" in names}
    return [
        *([f"no port may be listened on. Received: {sorted(held)}"] if held else []),
        *([f"no claim on a port may be left. Received: {sorted(claimed)}"] if claimed else []),
    ]
