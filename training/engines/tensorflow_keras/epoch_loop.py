"""The loop over epochs of trainings that Keras' own `fit` cannot run, as `fit` has it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from training.engines.tensorflow_keras.gang_callbacks import GangCallbacks


def train_epochs(
    model: Any, callbacks: GangCallbacks, train_epoch: Callable[[int], None], *, initial_epoch: int, epochs: int
) -> None:
    """Train until the last epoch, or until a callback stops the training; then finalize averages of weights.

    Args:
        model: The compiled model.
        callbacks: Hear that the training begins and ends.
        train_epoch: Trains one epoch, by its number from 0, and has the callbacks hear of it.
        initial_epoch: The first epoch.
        epochs: The number after the last one.
    """
    model.stop_training = False
    callbacks.on_train_begin()
    for epoch in range(initial_epoch, epochs):
        train_epoch(epoch)
        if model.stop_training:
            break
    model.optimizer.finalize_variable_values(model.trainable_weights)
    callbacks.on_train_end()
