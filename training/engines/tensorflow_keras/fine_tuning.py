"""Fine-tuning: weights from another model, layer by layer, and layers that are not trained; both with a report."""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import keras

from training.engines.load_report import LoadReport
from training.errors import spec_error
from training.names import say_nearest

#: Layer and variable name, such as `("dense", "kernel")`.
Key = tuple[str, str]


def read_model(path: Path) -> Any:
    """Return the Keras model in a folder in MLflow's format or in a `.keras` file.

    Raises:
        SpecError: It does not load.
    """
    try:
        if path.is_dir():
            import mlflow.tensorflow  # here, since importing MLflow takes 2 s

            return mlflow.tensorflow.load_model(str(path))
        return keras.models.load_model(path, compile=False)
    except Exception as error:
        message = f"must be a Keras model that loads. Received: {path}: {type(error).__name__}: {error}"
        raise spec_error("model.initialize_from", message) from error


def copy_weights(source: Any, model: Any) -> LoadReport:
    """Give the variables of `model` the values of those of `source` with the same layer, name and shape.

    Raises:
        SpecError: There is none.
    """
    have, wanted = dict(_iter_variables(source)), dict(_iter_variables(model))
    loaded: list[Key] = []
    reshaped: list[Key] = []
    for key in (key for key in wanted if key in have):
        same = tuple(have[key].shape) == tuple(wanted[key].shape)
        (loaded if same else reshaped).append(key)
        if same:
            wanted[key].assign(have[key].numpy())
    if not loaded:
        raise spec_error(
            "model.initialize_from",
            "must have at least one weight with the layer name and shape of one of the model's. "
            f"Received: {_list(have)}; the model has {_list(wanted)}.",
            "Name the layers alike.",
        )
    return LoadReport(
        loaded=_name(loaded),
        reshaped=_name(reshaped),
        absent=_name([key for key in wanted if key not in have]),
        unused=_name([key for key in have if key not in wanted]),
    )


def freeze_layers(model: Any, patterns: Sequence[str]) -> tuple[str, ...]:
    """Set the layers that match a pattern (as of a shell: `dense*`) to be not trained; return their names.

    Raises:
        SpecError: A pattern matches no layer.
    """
    layers = {layer.name: layer for layer in _iter_layers(model)}
    frozen = []
    for pattern in patterns:
        names = [name for name in layers if fnmatch.fnmatchcase(name, pattern)]
        if not names:
            message = f"must match the name of a layer. Received: {pattern}."
            raise spec_error("model.freeze", message, say_nearest(pattern, layers))
        frozen += [name for name in names if name not in frozen]
    for name in frozen:
        layers[name].trainable = False
    return tuple(frozen)


def describe_frozen(model: Any) -> str:
    """Return what of a built model is not trained, in words; empty when all is.

    Raises:
        SpecError: Nothing is left to be trained.
    """
    frozen = [layer.name for layer in _iter_layers(model) if not layer.trainable]
    if frozen and not model.trainable_variables:
        raise spec_error("model.freeze", f"must leave something to be trained. Received: {', '.join(frozen)}.")
    trained = sum(math.prod(variable.shape) for variable in model.trainable_variables)
    return f"{', '.join(frozen)}; {trained} of {model.count_params()} parameters are trained" if frozen else ""


def _iter_layers(model: Any) -> Iterator[Any]:
    yield from model._flatten_layers(include_self=False)


def _iter_variables(model: Any) -> Iterator[tuple[Key, Any]]:
    """Yield the model's variables by layer and name; those of one layer with one name are numbered."""
    counts: dict[Key, int] = {}
    for layer in _iter_layers(model):
        for variable in (*layer._trainable_variables, *layer._non_trainable_variables):
            if "seed" in variable.path.split("/")[-1]:
                continue  # of a generator of random numbers, no weight
            key = (layer.name, variable.name)
            counts[key] = counts.get(key, 0) + 1
            yield (key if counts[key] == 1 else (layer.name, f"{variable.name}.{counts[key]}")), variable


def _name(keys: Sequence[Key]) -> tuple[str, ...]:
    return tuple("/".join(key) for key in keys)


def _list(variables: dict[Key, Any]) -> str:
    return ", ".join(f"{'/'.join(key)} {list(variable.shape)}" for key, variable in variables.items()) or "nothing"
