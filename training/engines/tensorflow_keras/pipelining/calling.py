"""Calls of stages, which show what cannot be seen in their layers: losses that they add, weights that they read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from training.engines.tensorflow_keras.pipelining.row_losses import check_row_losses
from training.engines.tensorflow_keras.pipelining.sharing import check_reads
from training.engines.tensorflow_keras.pipelining.splittable import check_losses
from training.engines.tensorflow_keras.pipelining.splitting import Stage


def call_stage(model: Any, stages: Sequence[Stage], number: int, given: Any) -> Any:
    """Return what a stage of `model` makes of `given`, as in training.

    Raises:
        SpecError: It adds to the loss, or reads weights that another stage trains.
    """
    stage = stages[number]
    with check_reads(stage.variables, model.trainable_variables, number):
        made = stage.call(given, training=True)
    check_losses(stage.layers)
    return made


def try_stages(model: Any, stages: Sequence[Stage], x: Any, y: Any) -> None:
    """Have the stages work on a few rows, for what would be refused in the first step to be refused before any starts.

    Moving averages and random states of the model go on by that.

    Args:
        model: The model, compiled and built.
        stages: Its stages.
        x: Features of a few rows.
        y: Their labels.

    Raises:
        SpecError: A stage does what cannot be split, or the loss is none of rows.
    """
    made = tf.cast(x, model.inputs[0].dtype)
    for number in range(len(stages)):
        made = call_stage(model, stages, number, made)
    check_row_losses(model, y, made)
