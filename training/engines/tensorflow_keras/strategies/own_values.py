"""Brings together what each replica updates on its own: moving averages of `BatchNormalization` and the like.

TensorFlow's strategies mirror such a variable, but Keras 3 makes it without an aggregation: each replica keeps the
average of its own rows, and who reads the variable reads the first replica's. A moving average is linear in what is
averaged: the mean over replicas, taken now and then, is what taking it in each step would give.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from training.engines.tensorflow_keras.strategies.strategy import Vector


def read_value(variable: Any) -> Any:
    """Return the value of a `tf.Variable`; of a mirrored one, the first in this process."""
    return tf.convert_to_tensor(variable).numpy()


def settle_own_values(model: Any, average: Callable[[Vector], Vector], read: Callable[[Any], Any] = read_value) -> None:
    """Set every variable that no gradient moves to its mean over replicas.

    Args:
        model: A built Keras model.
        average: Returns the mean over ranks of this rank's values. It is computed in 64 bits: the mean of equal 32-bit
            numbers, those of frozen layers among them, is then that number.
        read: Returns the value of a `tf.Variable` in this process.
    """
    variables = [one for one in model.non_trainable_variables if tf.as_dtype(one.dtype).is_floating]
    if not variables:
        return
    own = [np.asarray(read(one.value), dtype=np.float64) for one in variables]
    means = average(np.concatenate([array.reshape(-1) for array in own]))
    ends = np.cumsum([array.size for array in own])
    for variable, array, mean in zip(variables, own, np.split(means, ends[:-1]), strict=True):
        variable.assign(tf.cast(mean.reshape(array.shape), variable.dtype))
