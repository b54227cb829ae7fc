"""Has the optimizer of a model use gradients of all ranks, as the spec says (`training.engines.horovod_gradients`)."""

from __future__ import annotations

from typing import Any

import horovod.tensorflow as hvd
import tensorflow as tf

from training.engines.horovod_gradients import Gradients, combine_before_use
from training.engines.tensorflow_keras.adasum import combine_adasum


def combine_gradients(model: Any, *, compression: str, reduction: str) -> None:
    """Make the optimizer of a compiled `model` use gradients of all ranks.

    Args:
        model: A compiled `keras.Model`.
        compression: `none`, or `fp16` for half the traffic.
        reduction: `average` or `adasum`.
    """
    compressor = hvd.Compression.fp16 if compression == "fp16" else hvd.Compression.none

    def average(gradients: Gradients) -> Gradients:
        averaged: Gradients = hvd.grouped_allreduce(gradients, op=hvd.Average, compression=compressor)
        return averaged

    model.jit_compile = False  # XLA does not know Horovod's operations
    combine_before_use(model.optimizer, _combine_by_adasum if reduction == "adasum" else average)


def _combine_by_adasum(gradients: Gradients) -> Gradients:
    return [combine_adasum(hvd.allgather(gradient[tf.newaxis]), hvd.size()) for gradient in gradients]
