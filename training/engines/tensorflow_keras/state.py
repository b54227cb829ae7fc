"""The state of a training as named arrays, and back: weights, optimizer, and metrics in mid-epoch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from training.engines.tensorflow_keras.strategies.strategy import Vector
from training.errors import spec_error

Arrays = dict[str, NDArray[Any]]


def read_state(model: Any, *, with_metrics: bool) -> Arrays:
    """Return the values of all variables of `model` and its optimizer.

    Args:
        model: A built, compiled model.
        with_metrics: Whether also the metrics' sums, as in mid-epoch. Under a multi-worker strategy these are added up
            over ranks: then every rank must call this.
    """
    return {name: np.asarray(variable.numpy()) for name, variable in _iter_state(model, with_metrics=with_metrics)}


def write_state(model: Any, arrays: Mapping[str, NDArray[Any]], *, metrics: bool) -> None:
    """Set variables from what `read_state` returned.

    Args:
        model: A built, compiled model.
        arrays: The values.
        metrics: False sets weights and optimizer, True the metrics alone, which `fit` resets when an epoch begins.

    Raises:
        SpecError: The model has other variables or other shapes.
    """
    named = [
        (name, variable) for name, variable in _iter_state(model, with_metrics=True) if _is_metric(name) == metrics
    ]
    wanted = {name: tuple(variable.shape) for name, variable in named}
    have = {name: array.shape for name, array in arrays.items() if _is_metric(name) == metrics}
    if wanted != have:
        differing = sorted(name for name in wanted.keys() | have.keys() if wanted.get(name) != have.get(name))
        name = differing[0]
        raise spec_error(
            "model",
            "must have the variables of the checkpoint to resume from it. "
            f"Received: {len(differing)} that differ, first {name}: "
            f"{have.get(name, 'absent')} in the checkpoint, {wanted.get(name, 'absent')} in the model.",
            "Undo the change of the model, or start a new run.",
        )
    for name, variable in named:
        variable.assign(arrays[name])


def map_metrics(arrays: Mapping[str, NDArray[Any]], change: Callable[[Vector], Vector]) -> Arrays:
    """Return `arrays` with those of metrics changed, in their order; types stay as they are."""
    return {
        name: change(array.astype(np.float64)).astype(array.dtype) if _is_metric(name) else array
        for name, array in arrays.items()
    }


def _iter_state(model: Any, *, with_metrics: bool) -> Iterator[tuple[str, Any]]:
    """Yield variables by number: Keras' own names count the models that the process has made."""
    groups = [("model", model.variables), ("optimizer", model.optimizer.variables)]
    if with_metrics:
        groups.append(("metric", model.metrics_variables))
    for group, variables in groups:
        for index, variable in enumerate(variables):
            yield f"{group}.{index:04d}", variable


def _is_metric(name: str) -> bool:
    return name.startswith("metric.")
