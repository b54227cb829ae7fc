"""`ganger doctor`: looks at everything that a run needs on this machine and says what to do about what is missing.

Looks only: starts nothing, and writes nothing but a probe file in the home folder that it removes at once.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psutil

from training import settings
from training.environments import RECIPES, read_environment
from training.environments.requirement import GIB, check_compiler, check_python, find_existing_parent
from training.errors import SpecError
from training.policy.slots import count_slots
from training.run.slot_table import SlotTable
from training.run.slot_wait import describe_holders
from training.serve.port import describe_busy, is_free
from training.serve.start import AIRFLOW_PORT, MLFLOW_PORT, read_services
from training.tracking.mask import mask_uri

RUN_DISK_GIB = 2.0
RANK_MEMORY_GIB = 1.0
NETWORK_FILE_SYSTEMS = {"nfs", "nfs4", "cifs", "smb3", "ceph", "glusterfs", "fuse.glusterfs", "lustre", "gpfs", "efs"}
TIMEOUT_S = 5.0
SHOWN = ("apache-airflow", "mlflow", "tensorflow-cpu", "tensorflow", "keras", "mxnet", "numpy", "horovod")


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was looked at.

    Attributes:
        name: What was looked at.
        ok: Whether it is as it must be; a missing optional thing is ok and says so in `detail`.
        detail: What was found, in one line.
        remedy: What to do; empty when it is ok.
    """

    name: str
    ok: bool
    detail: str
    remedy: str = ""


def check_machine() -> list[Check]:
    """Return what was found of everything that a run needs on this machine, in the order in which things depend."""
    home = settings.read_home()
    parts: tuple[Callable[[], Iterator[Check]], ...] = (
        _check_tools,
        lambda: _check_size(home),
        lambda: _check_slots(home),
        _check_environments,
        lambda: _check_home(home),
        lambda: _check_services(home),
        _check_optional,
    )
    return [check for part in parts for check in part()]


def _check_tools() -> Iterator[Check]:
    problem = check_python()
    version = ".".join(map(str, sys.version_info[:3]))
    yield Check(name="python", ok=not problem, detail=f"{version} ({sys.executable})", remedy=problem)
    problem = check_compiler()
    # Only a set-up compiles: an engine environment that has its Horovod needs no compiler any more.
    needed = any(read_environment(name).state != "present" for name, recipe in RECIPES.items() if recipe.horovod)
    detail = shutil.which("g++") or ("absent" if needed else "absent; needed only to build an engine environment")
    yield Check(name="g++ and make", ok=not (problem and needed), detail=detail, remedy=problem if needed else "")


def _check_size(home: Path) -> Iterator[Check]:
    cores = len(os.sched_getaffinity(0))
    yield Check(name="cores", ok=True, detail=f"{cores} usable: ranks on this host share them")
    memory = psutil.virtual_memory()
    enough = memory.available / GIB >= 2 * RANK_MEMORY_GIB
    yield Check(
        name="memory",
        ok=enough,
        detail=f"{memory.available / GIB:.1f} of {memory.total / GIB:.1f} GiB available",
        remedy=""
        if enough
        else f"A TensorFlow rank takes about {RANK_MEMORY_GIB:.0f} GiB: free some, or use one worker.",
    )
    free = shutil.disk_usage(find_existing_parent(home)).free / GIB
    yield Check(
        name="disk",
        ok=free >= RUN_DISK_GIB,
        detail=f"{free:.1f} GiB free on the disk of {home}",
        remedy=""
        if free >= RUN_DISK_GIB
        else f"Free {RUN_DISK_GIB - free:.1f} GiB, or set {settings.HOME} to another disk.",
    )


def _check_slots(home: Path) -> Iterator[Check]:
    table = SlotTable.here(home)
    problems: list[str] = []
    try:
        total = count_slots(settings.read_slots())
        claims = [row.claim for row in table.read(problems.append)]
    except SpecError as error:
        [problem] = error.problems
        yield Check(name="slots", ok=False, detail=f"{problem.field} {problem.message}", remedy=problem.remedy)
        return
    except OSError as error:
        remedy = f"Make {table.path} readable."
        yield Check(name="slots", ok=False, detail=f"{table.path}: {error.strerror}", remedy=remedy)
        return
    waiting = ", ".join(f"{claim.job_id} (for {claim.wanted})" for claim in claims if not claim.slots)
    holders = describe_holders([claim for claim in claims if claim.slots], time.time())
    parts = [f"{total} for ranks", f"held by {holders}", f"waiting: {waiting or 'nobody'}", *problems]
    yield Check(name="slots", ok=True, detail="; ".join(parts))


def _check_environments() -> Iterator[Check]:
    for name, recipe in RECIPES.items():
        if recipe.base or any(name in other.variants for other in RECIPES.values()):
            continue
        status = read_environment(name)
        if recipe.optional and status.state == "absent":
            detail = f"absent; only for engine {name}: {recipe.command}"
            yield Check(name=f"{name} environment", ok=True, detail=detail)
            continue
        versions = ", ".join(f"{package} {status.versions[package]}" for package in SHOWN if package in status.versions)
        yield Check(
            name=f"{name} environment",
            ok=not status.problem,
            detail=f"{status.state}: {versions or recipe.path}",
            remedy=status.problem,
        )


def _check_home(home: Path) -> Iterator[Check]:
    existing = find_existing_parent(home)
    try:
        with tempfile.TemporaryFile(dir=existing) as probe:
            probe.write(b"ganger")
            probe.flush()
            os.fsync(probe.fileno())
        yield Check(name="home folder", ok=True, detail=f"{home} can be written")
    except OSError as error:
        remedy = f"Make {existing} writable, or set {settings.HOME} to a folder that is."
        yield Check(name="home folder", ok=False, detail=f"{home}: {error.strerror}", remedy=remedy)
    kind = read_file_system(existing)
    shared = kind in NETWORK_FILE_SYSTEMS
    detail = f"{kind}: shared with other hosts" if shared else f"{kind}: for Airflow workers of this host only"
    yield Check(name="home sharing", ok=True, detail=detail)


def read_file_system(path: Path) -> str:
    """Return the type of the file system that holds `path`, as the kernel names it."""
    mounts = {part.mountpoint: part.fstype for part in psutil.disk_partitions(all=True)}
    return next((mounts[str(folder)] for folder in (path, *path.parents) if str(folder) in mounts), "unknown")


def _check_services(home: Path) -> Iterator[Check]:
    services = read_services(home)
    if services is None:
        for name, port in (("Airflow", AIRFLOW_PORT), ("MLflow", MLFLOW_PORT)):
            # Never a failure: without a wish, the next free port is taken.
            detail = "free" if is_free(port) else f"{describe_busy(name, port)} The next free one will be used."
            yield Check(name=f"port {port} ({name})", ok=True, detail=detail)
    else:
        yield Check(name="services", ok=True, detail=f"Airflow {services.airflow_url}, MLflow {services.mlflow_url}")
    yield check_tracking(settings.read_tracking_uri())


def check_tracking(uri: str) -> Check:
    """Return whether the tracking server at `uri` answers; a store on this machine's disk needs none."""
    shown = mask_uri(uri)
    if not uri.startswith(("http://", "https://")):
        return Check(name="tracking", ok=True, detail=f"{shown} (no server needed)")
    parts = urlsplit(uri)
    # Health asks for no password, and an address with one in it would end up in urllib's error messages.
    address = urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], f"{parts.path.rstrip('/')}/health", "", ""))
    try:
        with urllib.request.urlopen(address, timeout=TIMEOUT_S) as answer:
            answer.read()
    except (OSError, ValueError) as error:
        remedy = f"Start it (ganger serve), or set {settings.TRACKING_URI}."
        return Check(name="tracking", ok=False, detail=f"{shown} does not answer: {error}", remedy=remedy)
    return Check(name="tracking", ok=True, detail=f"{shown} answers")


def _check_optional() -> Iterator[Check]:
    for name, programs, use in (
        ("chromium", ("chromium", "chromium-browser", "google-chrome"), "the browser tests"),
        ("ssh", ("ssh",), "the ssh backend"),
        ("sbatch", ("sbatch",), "the slurm backend"),
        ("kubectl", ("kubectl",), "the kubernetes backend"),
        ("nvidia-smi", ("nvidia-smi",), "GPUs"),
    ):
        found = next(filter(None, map(shutil.which, programs)), None)
        yield Check(name=name, ok=True, detail=found or f"absent; only for {use}")
