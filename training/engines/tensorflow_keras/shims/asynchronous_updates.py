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
        counters: Variables that the step adds 1 to.
    """

    def __init__(self, metrics: Sequence[keras.Variable], counters: Sequence[keras.Variable]) -> None:
        zeros = [(variable, tf.zeros(variable.shape, variable.dtype)) for variable in metrics]
        super().__init__(zeros, initialize_variables=False)
        self._metrics = list(metrics)
        self._own = {id(variable) for variable in metrics}
        self._counters = {id(variable) for variable in counters}

    def add_update(self, update: tuple[keras.Variable, Any]) -> None:
        """Take the new value of a variable: keep it if it is a metric's, else assign it."""
        variable, value = update
        if id(variable) in self._own:
            super().add_update(update)
        elif id(variable) in self._counters:
            variable.value.assign_add(tf.ones((), variable.dtype))
        else:
            variable._direct_assign(value)

    def read_metrics(self) -> list[Any]:
        """Return what the step has made of the metrics' variables."""
        return [self.get_current_value(variable) for variable in self._metrics]


def list_counters(model: Any) -> list[keras.Variable]:
    """Return the variables in which the optimizer of a compiled `model` counts its updates."""
    optimizers = (model.optimizer, getattr(model.optimizer, "inner_optimizer", model.optimizer))
    return [optimizer.iterations for optimizer in dict.fromkeys(optimizers)]
