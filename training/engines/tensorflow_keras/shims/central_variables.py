"""Has replicas under CentralStorageStrategy update metrics and moving averages together, in the right proportion.

Each replica computes a new value of such a variable, and TensorFlow combines the values. Keras 3 asks for their sum for
metrics, which counts what was there before once per replica (a loss of 2.13 is reported where it is 1.17), and for
nothing at all for moving averages, so that `BatchNormalization` ends with "You must specify an aggregation method".
The mean is right for both: a metric is a quotient of two such variables. No upstream issue speaks of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import keras
import tensorflow as tf


def aggregate_updates() -> AbstractContextManager[Any]:
    """Return a scope in which variables are made with an aggregation; enter it inside the strategy's."""
    scope: AbstractContextManager[Any] = tf.variable_creator_scope(_create)
    return scope


def _create(create: Any, **options: Any) -> Any:
    unspecified = options.get("aggregation") in (None, tf.VariableAggregation.NONE)
    if unspecified or options.get("synchronization") == tf.VariableSynchronization.ON_READ:
        is_float = tf.as_dtype(options.get("dtype") or tf.float32).is_floating
        kinds = tf.VariableAggregation
        options["aggregation"] = kinds.MEAN if is_float else kinds.ONLY_FIRST_REPLICA
    return create(**options)


def scale_without_branch(optimizer: Any) -> None:
    """Make a `LossScaleOptimizer` count its steps without a branch of the graph: replicas cannot meet in one.

    Keras would end with "merge_call called while defining a new graph" (https://github.com/keras-team/keras/issues/18666).
    """
    if not isinstance(optimizer, keras.optimizers.LossScaleOptimizer):
        return

    def update(grads: Sequence[Any], trainable_variables: Any) -> None:
        scale, counter = optimizer.dynamic_scale, optimizer.step_counter
        unscaled = [None if grad is None else keras.ops.divide(grad, scale) for grad in grads]
        optimizer.inner_optimizer.apply(unscaled, trainable_variables=trainable_variables)
        is_time = keras.ops.equal(counter, optimizer.dynamic_growth_steps - 1)
        scale.assign(keras.ops.where(is_time, scale * 2.0, scale))
        counter.assign(keras.ops.where(is_time, 0, counter + 1))

    optimizer._stateful_handle_finite_grads = update
