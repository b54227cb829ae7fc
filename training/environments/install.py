"""The acts that make an environment: its folder, packages, the link to this checkout, Horovod, the import check."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from training import settings
from training.environments.command import run_logged
from training.environments.recipe import BOOTSTRAP, RECIPES, REQUIREMENTS, EnvironmentRecipe
from training.environments.registry import read_registry_variables
from training.environments.status import read_stamp, write_stamp
from training.environments.wheel import obtain_wheel
from training.errors import LaunchError

Log = Callable[[str], None]
Command = list[str | Path]


def log_file_of(recipe: EnvironmentRecipe) -> Path:
    """Return the file that the output of the commands of a set-up goes to."""
    return settings.read_engines_dir() / f"{recipe.name}.log"


def install_packages(recipe: EnvironmentRecipe) -> None:
    """Bring the packages of an environment to exactly what its lock says, and link this checkout into it.

    Raises:
        LaunchError: A package cannot be fetched or installed.
        InfrastructureError: The disk is full.
    """
    if needs_new_folder(recipe):
        create_folder(recipe)
    recipe.stamp.unlink(missing_ok=True)
    uv = find_uv(recipe)
    python = recipe.path / "bin" / "python"
    files = [REQUIREMENTS / recipe.lock, *_locks_on_top(recipe)]
    if recipe.base:
        _run(recipe, [uv, "pip", "install", "--python", python, "--require-hashes", "-r", *files])
        return
    _run(recipe, [uv, "pip", "sync", "--python", python, "--require-hashes", *files])
    link_checkout(recipe, uv)


def _locks_on_top(recipe: EnvironmentRecipe) -> list[Path]:
    tops = [top for top in RECIPES.values() if top.base == recipe.name and top.stamp.exists()]
    return [REQUIREMENTS / top.lock for top in tops]


def needs_new_folder(recipe: EnvironmentRecipe) -> bool:
    """Return whether the folder of an environment must be made anew: it is absent, half-built or was moved."""
    if recipe.base:
        return False
    stamp = read_stamp(recipe)
    return stamp is None or stamp.path != str(recipe.path) or not (recipe.path / "bin" / "python").exists()


def create_folder(recipe: EnvironmentRecipe) -> None:
    """Make an empty virtual environment, in place of a half-built one.

    Raises:
        LaunchError: The folder holds something else, or Python cannot make it.
        InfrastructureError: The disk is full.
    """
    if recipe.path.exists():
        if not (recipe.path / "pyvenv.cfg").exists() and any(recipe.path.iterdir()):
            raise LaunchError(f"{recipe.path} must be a virtual environment or absent, and is neither. Move it away.")
        shutil.rmtree(recipe.path)
    recipe.path.parent.mkdir(parents=True, exist_ok=True)
    # The interpreter beneath: the one that runs may lie in the very folder that was just removed.
    python = Path(sys.base_prefix) / "bin" / f"python{sys.version_info[0]}.{sys.version_info[1]}"
    _run(recipe, [python if python.exists() else sys.executable, "-m", "venv", recipe.path])


def find_uv(recipe: EnvironmentRecipe) -> Path:
    """Return the uv of the control environment, installed into it from its lock where it is not there yet.

    Raises:
        LaunchError: It cannot be fetched, or there is no control environment to install it into.
    """
    control = RECIPES["control"].path / "bin"
    for folder in (control, Path(sys.prefix) / "bin"):
        if (folder / "uv").exists():
            return folder / "uv"
    if not (control / "python").exists():
        raise LaunchError(f"the {recipe.name} environment is made with uv of the control environment. Run: make setup")
    command: Command = [
        control / "python",
        "-m",
        "pip",
        "install",
        "--quiet",
        "--require-hashes",
        "-r",
        REQUIREMENTS / BOOTSTRAP,
    ]
    _run(recipe, command, bridge=False)
    return control / "uv"


def link_checkout(recipe: EnvironmentRecipe, uv: Path) -> None:
    """Install this checkout into the environment as a link, without its dependencies: the lock has them.

    Raises:
        LaunchError: The packaging backend cannot be fetched.
    """
    python = recipe.path / "bin" / "python"
    command: Command = [
        uv,
        "pip",
        "install",
        "--python",
        python,
        "--no-deps",
        "--build-constraints",
        REQUIREMENTS / BOOTSTRAP,
    ]
    _run(recipe, [*command, "--editable", settings.REPOSITORY])


def renew_link(recipe: EnvironmentRecipe) -> None:
    """Install the link to this checkout again, after its packaging metadata changed.

    Raises:
        LaunchError: The packaging backend cannot be fetched.
    """
    link_checkout(recipe, find_uv(recipe))
    write_stamp(recipe)


def install_horovod(recipe: EnvironmentRecipe, log: Log) -> None:
    """Install Horovod, compiled for the framework of the environment.

    Raises:
        LaunchError: It does not compile or install.
        InfrastructureError: The disk is full.
    """
    with tempfile.TemporaryDirectory(prefix=".horovod.", dir=recipe.path.parent) as scratch:
        wheel = obtain_wheel(recipe, log_file=log_file_of(recipe), log=log, scratch=Path(scratch))
        python = recipe.path / "bin" / "python"
        _run(recipe, [find_uv(recipe), "pip", "install", "--python", python, "--no-deps", "--reinstall", wheel])


def verify_environment(recipe: EnvironmentRecipe) -> None:
    """Import what the environment is for, and stamp it as complete.

    Raises:
        LaunchError: A module does not import.
    """
    python = recipe.path / "bin" / "python"
    _run(recipe, [python, "-c", f"import {', '.join(recipe.imports)}"], doing="the import check of")
    write_stamp(recipe)


def _run(
    recipe: EnvironmentRecipe, command: Sequence[str | Path], *, doing: str = "installing", bridge: bool = True
) -> None:
    # uv leaves compiling to the first import, which writes nothing where PYTHONDONTWRITEBYTECODE is set or the folder
    # is another user's: each process would then compile TensorFlow again, which takes longer than importing it.
    env = {"UV_COMPILE_BYTECODE": "1", **os.environ, "PYTHONNOUSERSITE": "1"}
    if bridge:
        env |= read_registry_variables(Path(sys.executable), os.environ)
    run_logged(
        [str(part) for part in command],
        log_file=log_file_of(recipe),
        env=env,
        doing=f"{doing} the {recipe.name} environment",
    )
