"""The Python environments of Ganger: what each must hold, whether it is there, and how it is made.

Standard library only: the first environment is made by an interpreter that has nothing else. Nothing here imports what
an environment holds; its state is read from its stamp and from the metadata of its packages.
"""

from training.environments.build import build_environment, build_environments
from training.environments.recipe import RECIPES, EnvironmentRecipe
from training.environments.status import EnvironmentState, EnvironmentStatus, read_environment

__all__ = [
    "RECIPES",
    "EnvironmentRecipe",
    "EnvironmentState",
    "EnvironmentStatus",
    "build_environment",
    "build_environments",
    "read_environment",
]
