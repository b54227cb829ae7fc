"""Has optimizers clip and judge the gradients of the global batch under TensorFlow's synchronous strategies.

Keras 3 adds gradients up over replicas just before it updates weights. That is after it has clipped them, so that each
replica clips its own and a step depends on the number of replicas (https://github.com/tensorflow/tensorflow/issues/33929).
It is after `LossScaleOptimizer` has looked whether they are finite, too, which takes the first replica's answer for
everybody's: a number too large in another replica makes all weights NaN, and a rank whose own are finite waits for sums
that the others do not make. Here gradients are added up before either. Horovod's ranks do the same
(`training.engines.horovod_gradients`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf


def sum_before_use(optimizer: Any) -> None:
    """Make `optimizer` add its gradients up over replicas before it clips them or looks whether they are finite.

    Args:
        optimizer: A Keras 3 optimizer. Nothing is changed where it does neither.
    """
    inner = getattr(optimizer, "inner_optimizer", optimizer)
    if isinstance(optimizer, keras.optimizers.LossScaleOptimizer):
        apply = optimizer.apply
        optimizer.apply = lambda grads, trainable_variables=None: apply(_add_up(grads), trainable_variables)
    elif inner.clipnorm or inner.global_clipnorm or inner.clipvalue:
        clip = inner._clip_gradients
        inner._clip_gradients = lambda grads: clip(_add_up(grads))
    else:
        return
    inner._all_reduce_sum_gradients = list  # of pairs: they are sums already


def _add_up(gradients: Sequence[Any]) -> list[Any]:
    """Return the sums over replicas; None stays None, and all replicas have it in the same places."""
    summed = list(gradients)
    places = [index for index, gradient in enumerate(summed) if gradient is not None]
    if not places:
        return summed
    context = tf.distribute.get_replica_context()
    found = context.all_reduce(tf.distribute.ReduceOp.SUM, [summed[index] for index in places])
    for index, gradient in zip(places, found, strict=True):
        summed[index] = gradient
    return summed
