"""Puts the variables of a built Keras 3 model, and of its optimizer, onto devices that were chosen afterwards.

Where a layer goes is known when the whole model is built, and Keras has no way to move a variable: its
`keras.Variable` keeps the `tf.Variable` that it was made with. Here that one is replaced by another elsewhere, with the
same value. Which weight an optimizer's variable belongs to is noted while the optimizer is built.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import keras
import tensorflow as tf
from keras.src.backend.tensorflow.optimizer import TFOptimizer

#: Variables of optimizers, each with the weight that it was made for.
Beside = list[tuple[keras.Variable, keras.Variable]]


@contextlib.contextmanager
def note_optimizer_variables(beside: Beside) -> Iterator[None]:
    """Note in `beside` which variables the optimizers that are built in the meantime make for which weight."""
    make = TFOptimizer.add_variable_from_reference

    def make_and_note(self: Any, reference_variable: Any, *args: Any, **kwargs: Any) -> Any:
        made = make(self, reference_variable, *args, **kwargs)
        beside.append((made, reference_variable))
        return made

    TFOptimizer.add_variable_from_reference = make_and_note
    try:
        yield
    finally:
        TFOptimizer.add_variable_from_reference = make


def move_variable(variable: keras.Variable, device: str) -> None:
    """Put a variable onto `device`; its value stays."""
    old = variable.value
    with tf.device(device):
        variable._value = tf.Variable(old.numpy(), dtype=old.dtype, trainable=old.trainable, name=variable.name)


def update_beside_weights(optimizer: Any) -> None:
    """Have an optimizer compute the update of each weight where the weight is; Keras leaves that to its strategy.

    Nor are gradients added up over replicas, which would bring them all to one place: there is one replica.
    """
    update_step = optimizer.update_step

    def update_there(gradient: Any, variable: Any, learning_rate: Any) -> None:
        with tf.device(variable.device):
            update_step(gradient, variable, learning_rate)

    optimizer.update_step = update_there
    optimizer._all_reduce_sum_gradients = list


def find_moved_weights(optimizer: Any) -> None:
    """Have a built optimizer find its weights again, which it knows by their `tf.Variable`."""
    weights = optimizer._trainable_variables
    optimizer._trainable_variables_indices = {optimizer._var_key(weight): i for i, weight in enumerate(weights)}
