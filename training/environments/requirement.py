"""What must be on the machine before an environment can be made. Each check returns a sentence, or nothing."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

from training.environments.recipe import EnvironmentRecipe
from training.environments.status import PYTHON
from training.errors import InfrastructureError, PreflightError

GIB = 1024**3


def check_python(version: tuple[int, ...] = sys.version_info[:3]) -> str:
    """Return what is wrong with the Python that runs, or an empty text."""
    if tuple(version[:2]) != PYTHON:
        got, want = ".".join(map(str, version)), ".".join(map(str, PYTHON))
        return f"Ganger needs Python {want}, and this is {got}. Give the right one: make PYTHON=/path/to/python{want}"
    if importlib.util.find_spec("ensurepip") is None:
        return "this Python has no ensurepip to make environments with (Debian: apt-get install python3.11-venv)."
    return ""


def find_compiler() -> str | None:
    """Return the C++ compiler: `$CXX`, or g++ on PATH; None when there is none."""
    return shutil.which(os.environ.get("CXX") or "g++")


def check_compiler() -> str:
    """Return what is missing for compiling Horovod, or an empty text."""
    missing = [name for name, path in (("g++", find_compiler()), ("make", shutil.which("make"))) if path is None]
    if not missing:
        return ""
    return (
        f"Horovod is compiled on this machine, and {' and '.join(missing)} is not on PATH. "
        f"Install it (Debian: apt-get install g++ make) and run the same command again."
    )


def find_existing_parent(path: Path) -> Path:
    """Return `path`, or the nearest folder above it that exists."""
    return next(folder for folder in (path, *path.parents) if folder.exists())


def check_disk(path: Path, gib: float) -> str:
    """Return a sentence when the disk that `path` is or will be on has less than `gib` GiB free, or an empty text."""
    free = shutil.disk_usage(find_existing_parent(path)).free / GIB
    if free >= gib:
        return ""
    return (
        f"{gib:.1f} GiB must be free on the disk of {path}, and {free:.1f} GiB are. Free some space, then run it again."
    )


def require_for(recipes: Iterable[EnvironmentRecipe]) -> None:
    """Check the machine for all of `recipes` before the first of them costs anybody a minute.

    Raises:
        PreflightError: Python or a compiler is wrong or missing.
        InfrastructureError: The disk has too little space.
    """
    recipes = tuple(recipes)
    problem = check_python() or (check_compiler() if any(recipe.horovod for recipe in recipes) else "")
    if problem:
        raise PreflightError(problem)
    needs: dict[int, tuple[Path, float]] = {}
    for recipe in recipes:
        device = find_existing_parent(recipe.path).stat().st_dev
        path, gib = needs.get(device, (recipe.path.parent, 0.0))
        needs[device] = (path, gib + recipe.disk_gib)
    full = next(filter(None, (check_disk(path, gib) for path, gib in needs.values())), "")
    if full:
        raise InfrastructureError(full)
