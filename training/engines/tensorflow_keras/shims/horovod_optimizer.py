"""Has a Keras 3 optimizer average its gradients over Horovod's ranks.

Horovod 0.28.1's `DistributedOptimizer` and callbacks know the optimizers of Keras 2 only:
https://github.com/horovod/horovod/issues/4290. Keras 3 hands gradients to `apply`, which adds them up over the steps of
`gradient_accumulation_steps`, clips them, and updates. They are averaged just before they are clipped: the norm that is
clipped is then that of the global batch, and what is accumulated locally travels once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import horovod.tensorflow as hvd
import keras
import tensorflow as tf

from training.engines.tensorflow_keras.adasum import combine_adasum

Gradients = list[Any]
Reduce = Callable[[Sequence[Any]], Gradients]


def average_gradients(model: Any, *, compression: str, reduction: str) -> None:
    """Make the optimizer of a compiled `model` use gradients of all ranks.

    Args:
        model: A compiled `keras.Model`.
        compression: `none`, or `fp16` for half the traffic.
        reduction: `average` or `adasum`.
    """
    model.jit_compile = False  # XLA does not know Horovod's operations
    reduce = _choose_reduce(compression, reduction)
    optimizer = model.optimizer
    if isinstance(optimizer, keras.optimizers.LossScaleOptimizer):
        # Whether a step is finite, and so is made, is to be decided alike on all ranks.
        apply = optimizer.apply
        optimizer.apply = lambda grads, trainable_variables=None: apply(reduce(grads), trainable_variables)
    else:
        clip = optimizer._clip_gradients
        optimizer._clip_gradients = lambda grads: clip(reduce(grads))


def _choose_reduce(compression: str, reduction: str) -> Reduce:
    compressor = hvd.Compression.fp16 if compression == "fp16" else hvd.Compression.none

    def average(dense: Gradients) -> Gradients:
        averaged: Gradients = hvd.grouped_allreduce(dense, op=hvd.Average, compression=compressor)
        return averaged

    def adasum(dense: Gradients) -> Gradients:
        return [combine_adasum(hvd.allgather(gradient[tf.newaxis]), hvd.size()) for gradient in dense]

    combine = adasum if reduction == "adasum" else average

    def reduce(gradients: Sequence[Any]) -> Gradients:
        """Return the gradients of all ranks; None stays None, which all ranks have in the same places."""
        places = [index for index, gradient in enumerate(gradients) if gradient is not None]
        combined = combine([tf.convert_to_tensor(gradients[index]) for index in places])
        reduced = list(gradients)
        for index, gradient in zip(places, combined, strict=True):
            reduced[index] = gradient
        return reduced

    return reduce
