"""Has replicas under CentralStorageStrategy update metrics and moving averages together, in the right proportion.

Each replica computes a new value of such a variable, and TensorFlow combines the values. Keras 3 asks for their sum for
metrics, which counts what was there before once per replica (a loss of 2.13 is reported where it is 1.17), and for
nothing at all for moving averages, so that `BatchNormalization` ends with "You must specify an aggregation method".
The mean is right for both: a metric is a quotient of two such variables. No upstream issue speaks of it.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

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
