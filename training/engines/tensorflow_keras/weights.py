"""Numbers by which the weights of two trainings of Keras are compared."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from training.engines import weights


def hash_weights(variables: Iterable[Any]) -> str:
    """Return `training.engines.weights.hash_weights` of the values of `variables`."""
    return weights.hash_weights(variable.numpy() for variable in variables)


def norm_weights(variables: Iterable[Any]) -> float:
    """Return `training.engines.weights.norm_weights` of the values of `variables`."""
    return weights.norm_weights(variable.numpy() for variable in variables)
