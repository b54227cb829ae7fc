"""Makes environments: steps that can be listed, then done one after the other, each with its time."""

from __future__ import annotations

import contextlib
import fcntl
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from training import settings
from training.environments.install import install_horovod, install_packages, renew_link, verify_environment
from training.environments.recipe import EnvironmentRecipe, find_recipe
from training.environments.requirement import require_for
from training.environments.status import (
    EnvironmentState,
    EnvironmentStatus,
    choose_variant,
    make_stamp,
    read_environment,
    read_stamp,
)

Log = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildStep:
    """One step of a set-up.

    Attributes:
        title: What it does, for people.
        act: Does it; is given the log function.
    """

    title: str
    act: Callable[[Log], None]


def build_environment(name: str, log: Log = print) -> EnvironmentStatus:
    """Make the environment `name`, or bring it up to its lock; does nothing when it is complete.

    Raises:
        SpecError: There is no such environment.
        PreflightError: Python, a compiler or another environment is missing.
        LaunchError: A package cannot be fetched, installed or compiled.
        InfrastructureError: The disk is full.
    """
    return build_environments([name], log)[0]


def build_environments(names: Sequence[str], log: Log = print) -> list[EnvironmentStatus]:
    """Make several environments, with their steps counted together. Raises as `build_environment` does."""
    recipes = [find_recipe(name) for name in names]
    with lock_environments(recipes, log):
        require_for([recipe for recipe in recipes if not is_installed(recipe)])
        steps = [step for recipe in recipes for step in plan_steps(recipe)]
        for number, step in enumerate(steps, start=1):
            run_step(step, f"[{number}/{len(steps)}]", log)
    return [read_environment(name) for name in names]


def run_step(step: BuildStep, counter: str, log: Log) -> None:
    """Do one step and say what it is and how long it took. Raises what the step raises."""
    log(f"{counter} {step.title} …")
    began = time.monotonic()
    step.act(log)
    log(f"{counter} {step.title}: {time.monotonic() - began:.0f} s")


def is_installed(recipe: EnvironmentRecipe) -> bool:
    """Return whether the environment of `recipe` holds what its lock says."""
    return read_environment(recipe.name).state is EnvironmentState.PRESENT


def plan_steps(recipe: EnvironmentRecipe) -> list[BuildStep]:
    """Return the steps that the environment of `recipe` still needs, in order; the last one stamps it as complete."""
    if is_installed(recipe):
        stamp = read_stamp(recipe)
        recipe = choose_variant(recipe, stamp)
        if recipe.base or (stamp is not None and stamp.project == make_stamp(recipe).project):
            return []
        # Whoever uses the environment meanwhile notices nothing: no package is touched.
        title = f"{recipe.name} environment: link to this checkout"
        return [BuildStep(title=title, act=lambda log: renew_link(recipe))]
    head = f"{recipe.name} environment"
    packages = BuildStep(title=f"{head}: {recipe.holds}", act=lambda log: install_packages(recipe))
    check = BuildStep(title=f"{head}: import check", act=lambda log: verify_environment(recipe))
    if not recipe.horovod:
        return [packages, check]
    return [packages, BuildStep(title=f"{head}: Horovod", act=lambda log: install_horovod(recipe, log)), check]


@contextlib.contextmanager
def lock_environments(recipes: Sequence[EnvironmentRecipe], log: Log) -> Iterator[None]:
    """Keep other set-ups of the same environments waiting meanwhile."""
    with contextlib.ExitStack() as stack:
        for name in sorted({recipe.folder.lstrip(".") for recipe in recipes}):
            path = settings.read_engines_dir() / f".{name}.lock"
            path.parent.mkdir(parents=True, exist_ok=True)
            stream = stack.enter_context(path.open("w"))
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                log(f"another set-up of the {name} environment is at work; waiting for it …")
                fcntl.flock(stream, fcntl.LOCK_EX)
        yield
