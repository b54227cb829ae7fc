"""What each environment is made from: its locks, its folder, and whether Horovod is compiled for it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from training import settings
from training.errors import spec_error

REQUIREMENTS = settings.REPOSITORY / "requirements"
#: Locks uv, which installs everything else, and the backend that links this checkout into an environment.
BOOTSTRAP = "bootstrap.txt"
HOROVOD = "horovod.txt"


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentRecipe:
    """How an environment is made.

    Attributes:
        name: What it is asked for by.
        holds: What is in it, for people.
        lock: Its lock file in `requirements/`.
        base: Name of the recipe whose environment this one is installed into; empty for one of its own.
        folder: Name of its folder; the engine environments lie in the engines folder, others in the repository.
        horovod: Package of the framework that Horovod is compiled for; empty when it holds no Horovod.
        horovod_flags: Build flags of Horovod, beside those that all builds share.
        imports: Modules that must import before it counts as complete.
        disk_gib: Space that it needs, package cache and build included.
        variants: Recipes whose environment, in the same folder, serves as well.
        optional: Whether a machine without it is as it must be.
    """

    name: str
    holds: str
    lock: str
    base: str = ""
    folder: str
    horovod: str = ""
    horovod_flags: tuple[tuple[str, str], ...] = ()
    imports: tuple[str, ...] = ()
    disk_gib: float
    variants: tuple[str, ...] = ()
    optional: bool = False

    @property
    def is_engine(self) -> bool:
        """Whether ranks run in it."""
        return not self.folder.startswith(".")

    @property
    def path(self) -> Path:
        """Where the environment is."""
        return (settings.read_engines_dir() if self.is_engine else settings.REPOSITORY) / self.folder

    @property
    def lock_files(self) -> tuple[Path, ...]:
        """The locks that decide what it holds."""
        return (REQUIREMENTS / self.lock, *([REQUIREMENTS / HOROVOD] if self.horovod else []))

    @property
    def stamp(self) -> Path:
        """The file that is written when the environment is complete, and only then."""
        name = f"ganger-{self.name}.json" if self.base else "ganger-environment.json"
        return self.path / name

    @property
    def command(self) -> str:
        """What a person runs to make it."""
        return f"ganger env build {self.folder}" if self.is_engine else "make setup"


_TENSORFLOW_FLAGS = (("HOROVOD_WITH_TENSORFLOW", "1"), ("HOROVOD_WITHOUT_MXNET", "1"))
_TENSORFLOW_IMPORTS = ("tensorflow", "keras", "horovod.tensorflow", "training")

RECIPES = {
    recipe.name: recipe
    for recipe in (
        EnvironmentRecipe(
            name="control",
            holds="Airflow, MLflow, the ganger command",
            lock="control.txt",
            folder=".venv",
            imports=("training", "click", "rich", "psutil"),
            disk_gib=1.2,
        ),
        EnvironmentRecipe(
            name="dev",
            holds="pytest, ruff, mypy",
            lock="dev.txt",
            base="control",
            folder=".venv",
            imports=("pytest",),
            disk_gib=0.4,
        ),
        EnvironmentRecipe(
            name="postgres",
            holds="the drivers of a Postgres database",
            lock="postgres.txt",
            base="control",
            folder=".venv",
            imports=("psycopg2", "asyncpg"),
            disk_gib=0.1,
        ),
        EnvironmentRecipe(
            name="tensorflow",
            holds="TensorFlow, Keras 3, Horovod",
            lock="tensorflow.txt",
            folder="tensorflow",
            horovod="tensorflow-cpu",
            horovod_flags=(*_TENSORFLOW_FLAGS, ("HOROVOD_CPU_OPERATIONS", "GLOO")),
            imports=_TENSORFLOW_IMPORTS,
            disk_gib=2.8,
            variants=("tensorflow-gpu",),
        ),
        EnvironmentRecipe(
            name="tensorflow-gpu",
            holds="TensorFlow for NVIDIA GPUs, Keras 3, Horovod",
            lock="tensorflow-gpu.txt",
            folder="tensorflow",
            # Horovod's CUDA operations need the CUDA compiler, which no wheel has: its reductions go through the hosts.
            horovod="tensorflow",
            horovod_flags=(*_TENSORFLOW_FLAGS, ("HOROVOD_CPU_OPERATIONS", "GLOO")),
            imports=_TENSORFLOW_IMPORTS,
            disk_gib=10.0,
        ),
        EnvironmentRecipe(
            name="mxnet",
            holds="MXNet, Horovod",
            lock="mxnet.txt",
            folder="mxnet",
            horovod="mxnet",
            horovod_flags=(
                ("HOROVOD_WITH_MXNET", "1"),
                ("HOROVOD_WITHOUT_TENSORFLOW", "1"),
                ("HOROVOD_CPU_OPERATIONS", "GLOO"),
            ),
            imports=("mxnet", "horovod.mxnet", "training"),
            disk_gib=1.2,
            optional=True,  # `make demo` makes do without
        ),
    )
}


def find_recipe(name: str) -> EnvironmentRecipe:
    """Return the recipe called `name`.

    Raises:
        SpecError: There is none.
    """
    if name not in RECIPES:
        raise spec_error("", f"there is no environment {name!r}.", f"There are: {', '.join(RECIPES)}")
    return RECIPES[name]
