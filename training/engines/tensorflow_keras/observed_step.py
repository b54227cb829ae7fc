"""A training step that also tells the loss of every replica, the same on every rank."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import tensorflow as tf

if TYPE_CHECKING:
    from training.engines.tensorflow_keras.strategies.strategy import SynchronousStrategy

#: Key of the losses in the logs of a step; taken out before anybody else sees the logs.
LOSSES = "ganger_losses"

#: Does a training step on data; returns its loss, a float32 scalar, and its logs.
TrainStep = Callable[[Any], tuple[Any, dict[str, Any]]]


@contextlib.contextmanager
def keep_loss(model: Any, loss_scale: int = 1) -> Iterator[TrainStep]:
    """Give the training step of `model` such that it returns the loss of the step's own rows, too.

    Args:
        model: A compiled `keras.Model`.
        loss_scale: What Keras divides the loss of a replica by, so that gradients may be summed.
    """
    train_step, compute_loss = model.train_step, model.compute_loss
    traced = threading.local()  # TensorFlow traces the replicas of one process in threads that take turns

    def compute_and_keep_loss(*args: Any, **kwargs: Any) -> Any:
        loss = compute_loss(*args, **kwargs)
        traced.loss = loss
        return loss

    def train_and_tell_loss(data: Any) -> tuple[Any, dict[str, Any]]:
        traced.loss = None
        logs = dict(train_step(data))
        # A train_step of the user's own that computes its loss elsewhere is known by its logs only.
        known = traced.loss is not None
        loss = tf.cast(traced.loss, tf.float32) * loss_scale if known else tf.cast(logs["loss"], tf.float32)
        return tf.reshape(loss, ()), logs

    model.compute_loss = compute_and_keep_loss
    try:
        yield train_and_tell_loss
    finally:
        del model.compute_loss


@contextlib.contextmanager
def observe_steps(model: Any, strategy: SynchronousStrategy) -> Iterator[None]:
    """Make the logs of each training step hold `LOSSES`: the loss of each replica's rows, shape (1, replicas).

    In Keras, logs are means over the epoch so far and, under a multi-worker strategy, over the rank's own rows only.
    One collective a step gathers losses and logs of all replicas, so that every rank sees the same: the ranks stop at
    the same step when one loss is NaN, and a callback decides alike everywhere.
    """
    with keep_loss(model, strategy.loss_scale) as train_step:
        model.train_step = lambda data: _gather_logs(strategy, *train_step(data))
        try:
            yield
        finally:
            del model.train_step
            model.train_function = None  # made of the observed step


def _gather_logs(strategy: SynchronousStrategy, loss: Any, logs: dict[str, Any]) -> dict[str, Any]:
    names = list(logs)
    row = tf.stack([loss, *(tf.reshape(tf.cast(logs[name], tf.float32), ()) for name in names)])
    table = strategy.gather(row)
    means = tf.reduce_mean(table[:, 1:], axis=0)
    return {**{name: means[index] for index, name in enumerate(names)}, LOSSES: table[tf.newaxis, :, 0]}
