"""Whether an environment is there and complete: fast, since preflight and plans ask it every time."""

from __future__ import annotations

import enum
import hashlib
import json
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from training import settings
from training.environments.lock import compare_versions, digest_files, read_pins, read_versions
from training.environments.recipe import RECIPES, EnvironmentRecipe

PYTHON = (3, 11)


class EnvironmentState(enum.StrEnum):
    """Life stages of an environment."""

    PRESENT = "present"
    ABSENT = "absent"
    STALE = "stale"
    """Complete, but made from another lock or by another checkout."""
    BROKEN = "broken"
    """Half-built, moved, or changed by hand since."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentStatus:
    """What is known of an environment.

    Attributes:
        name: Name of the environment.
        python: Its interpreter; it exists only if the state is present or stale.
        state: Whether ranks can run in it.
        versions: Package to version of what is installed in it.
        problem: Why it cannot be used and what to do, in one sentence; empty when it can.
    """

    name: str
    python: Path
    state: EnvironmentState
    versions: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """Written into an environment when it is complete.

    Attributes:
        recipe: Name of its recipe.
        lock: Digest of the locks that it was made from.
        path: Where it was made; an environment does not survive being moved.
        repository: The checkout that is linked into it.
        project: Digest of that checkout's packaging metadata.
    """

    recipe: str
    lock: str
    path: str
    repository: str
    project: str


def make_stamp(recipe: EnvironmentRecipe) -> Stamp:
    """Return the stamp that `recipe` would get now."""
    return Stamp(
        recipe=recipe.name,
        lock=digest_files(recipe.lock_files),
        path=str(recipe.path),
        repository=str(settings.REPOSITORY),
        project=digest_project(settings.REPOSITORY / "pyproject.toml"),
    )


def digest_project(path: Path) -> str:
    """Return a digest of what of `pyproject.toml` an installed link to a checkout depends on: not of lint rules."""
    tables = tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    packaging = [tables.get("build-system"), tables.get("project"), tables.get("tool", {}).get("hatch")]
    return hashlib.sha256(json.dumps(packaging, sort_keys=True).encode()).hexdigest()


def read_stamp(recipe: EnvironmentRecipe) -> Stamp | None:
    """Return the stamp of the environment; None when it has none that can be read."""
    try:
        return Stamp(**json.loads(recipe.stamp.read_text(encoding="utf-8")))
    except (FileNotFoundError, NotADirectoryError, ValueError, TypeError):
        return None


def write_stamp(recipe: EnvironmentRecipe) -> None:
    """Say that the environment is complete."""
    temporary = recipe.stamp.with_suffix(".tmp")
    temporary.write_text(json.dumps(asdict(make_stamp(recipe)), indent=2) + "\n", encoding="utf-8")
    temporary.replace(recipe.stamp)


def read_environment(name: str) -> EnvironmentStatus:
    """Return what is known of the environment `name`; takes milliseconds and imports nothing of it."""
    recipe = RECIPES.get(name)
    if recipe is None:
        python = settings.read_engines_dir() / name / "bin" / "python"
        problem = f"the {name} environment is not built yet; there are: {', '.join(RECIPES)}."
        return EnvironmentStatus(name=name, python=python, state=EnvironmentState.ABSENT, problem=problem)
    recipe = choose_variant(recipe, read_stamp(recipe))
    versions = read_versions(recipe.path)
    state, reason = judge_environment(recipe, versions)
    problem = f"the {name} environment {reason} Run: {recipe.command}" if reason else ""
    python = recipe.path / "bin" / "python"
    return EnvironmentStatus(name=name, python=python, state=state, versions=versions, problem=problem)


def choose_variant(recipe: EnvironmentRecipe, stamp: Stamp | None) -> EnvironmentRecipe:
    """Return the recipe to judge an environment by: its own variant of `recipe`, if it was made from one."""
    return RECIPES[stamp.recipe] if stamp is not None and stamp.recipe in recipe.variants else recipe


def judge_environment(recipe: EnvironmentRecipe, versions: Mapping[str, str]) -> tuple[EnvironmentState, str]:
    """Return the state of an environment that holds `versions`, and what is wrong with it."""
    if not recipe.path.exists() or (recipe.base and not recipe.stamp.exists()):
        return EnvironmentState.ABSENT, f"is absent ({recipe.path})."
    stamp = read_stamp(recipe)
    if stamp is None:
        return EnvironmentState.BROKEN, f"is half-built: {recipe.path} has no stamp."
    if stamp.recipe != recipe.name:
        return EnvironmentState.STALE, f"was made as {stamp.recipe}."
    if stamp.path != str(recipe.path) or not (recipe.path / "bin" / "python").exists():
        return EnvironmentState.BROKEN, f"was moved from {stamp.path}, or its Python is gone."
    current = make_stamp(recipe)
    differences = compare_versions(read_pins(recipe.lock_files), versions)
    if stamp.lock != current.lock:
        return EnvironmentState.STALE, f"was made from another lock ({_shorten(differences)})."
    if stamp.repository != current.repository:
        return EnvironmentState.STALE, f"is linked to another checkout, {stamp.repository}."
    if differences:
        return EnvironmentState.BROKEN, f"was changed by hand ({_shorten(differences)})."
    return EnvironmentState.PRESENT, ""


def _shorten(lines: list[str]) -> str:
    if not lines:
        return "same versions"
    rest = f" and {len(lines) - 3} more" if len(lines) > 3 else ""
    return "; ".join(lines[:3]) + rest
