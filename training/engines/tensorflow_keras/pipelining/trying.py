"""Tries stages on a few rows: what cannot be seen in layers shows when they are called, before anything is trained."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from training.engines.tensorflow_keras.pipelining.row_losses import check_row_losses
from training.engines.tensorflow_keras.pipelining.sharing import check_reads
from training.engines.tensorflow_keras.pipelining.splittable import refuse
from training.engines.tensorflow_keras.pipelining.splitting import Stage
from training.engines.tensorflow_keras.rows import Batch


def try_stages(model: Any, stages: Sequence[Stage], example: Batch) -> tuple[str, ...]:
    """Have the stages of `model` work on a few rows, as in training; the model is afterwards what it was.

    Return the names of the layers whose state goes on when they are called, as moving averages and random states do: in
    a pipeline, it will with each micro-batch.

    Args:
        model: Compiled and built.
        stages: Its stages.
        example: The rows.

    Raises:
        SpecError: A stage does what cannot be split, the loss is not one of each row, or rows have weights.
    """
    x, y = _read_parts(example)
    layers = [layer for stage in stages for layer in stage.layers if isinstance(layer, keras.Layer)]
    before = [variable.numpy() for variable in model.variables]
    made = tf.cast(x, model.inputs[0].dtype)
    for number, stage in enumerate(stages):
        with check_reads(stage.variables, model.trainable_variables, number):
            made = stage.call(made, training=True)
    check_row_losses(model, y, made)
    changed = set()
    for variable, value in zip(model.variables, before, strict=True):
        if not np.array_equal(variable.numpy(), value):
            changed.add(id(variable))
            variable.assign(value)
    _check_losses(layers)
    _check_changes(layers, changed)
    return tuple(layer.name for layer in layers if any(id(variable) in changed for variable in layer.variables))


def _read_parts(example: Batch) -> Batch:
    """Return features and labels, of which rows must consist: nothing else travels with the micro-batches."""
    if len(example) == 2:
        return example
    raise refuse(
        "must be given features and labels alone to be trained in stages. "
        f"Received: rows of {len(example)} parts, as those with weights."
    )


def _check_losses(layers: Iterable[Any]) -> None:
    """Check, after a call, that no layer has added to the loss."""
    for layer in (inner for outer in layers for inner in outer._flatten_layers()):
        if layer._get_own_losses():
            raise refuse(
                "must add nothing to its loss in its layers to be split into stages: how that adds up over "
                f"micro-batches is the layer's to say. Received: a loss of {layer.name}.",
                "Regularize weights instead, or compute it in the loss.",
            )


def _check_changes(layers: Iterable[Any], changed: Collection[int]) -> None:
    """Check that no layer has changed weights that are trained: backward, a micro-batch would find others."""
    for layer in layers:
        for variable in layer.trainable_variables:
            if id(variable) in changed:
                raise refuse(
                    "must leave weights to the optimizer to be split into stages. "
                    f"Received: {layer.name}, which changes {variable.path} whenever it is called.",
                    "Use another strategy, or another layer.",
                )
