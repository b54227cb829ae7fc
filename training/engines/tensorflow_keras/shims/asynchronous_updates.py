"""Keeps what many workers update at once from losing updates under ParameterServerStrategy.

Keras 3 has no training with parameter servers (https://github.com/keras-team/keras/issues/18624), and its
`Variable.assign_add` reads, adds, and assigns: of two workers that do so at once, one is lost (17 of 20 updates were
counted by an optimizer's `iterations`). Optimizers update weights by TensorFlow's own `assign_add` and `assign_sub`,
which are whole; `iterations` and metrics are not. Here `iterations` is counted by TensorFlow's `assign_add`, and
metrics are not shared at all: each training step begins them anew, and the chief adds them up.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf


class UpdateScope(keras.StatelessScope):
    """Surrounds one training step of a worker: metrics stay its own, all other variables are updated at once.

    Args:
        metrics: The variables of the metrics; zero when the scope begins.
    """

    def __init__(self, metrics: Sequence[keras.Variable]) -> None:
        zeros = [(variable, tf.zeros(variable.shape, variable.dtype)) for variable in metrics]
        super().__init__(zeros, initialize_variables=False)
        self._metrics = list(metrics)
        self._own = {id(variable) for variable in metrics}

    def add_update(self, update: tuple[keras.Variable, Any]) -> None:
        """Take the new value of a variable: keep it if it is a metric's, else assign it."""
        variable, value = update
        if id(variable) in self._own:
            super().add_update(update)
        else:
            variable._direct_assign(value)

    def read_metrics(self) -> list[Any]:
        """Return what the step has made of the metrics' variables."""
        return [self.get_current_value(variable) for variable in self._metrics]


def count_at_once(optimizer: Any) -> None:
    """Make `optimizer` count its updates by TensorFlow's `assign_add`, in whatever thread it does so.

    `LossScaleOptimizer` updates in a thread of its own, to which no scope reaches.
    """
    counter = optimizer.iterations  # of a LossScaleOptimizer: its inner optimizer's
    counter.assign_add = lambda value: counter.value.assign_add(tf.cast(value, counter.dtype))
