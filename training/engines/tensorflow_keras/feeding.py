"""A rank's rows as a `tf.data` pipeline: exactly its slices of the global batches, from one step to another."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from training.data.batches import RowNumbers, order_epoch, slice_epoch
from training.data.dataset import Dataset
from training.plan.batches import BatchPlan

#: Datasets up to this size are copied into memory once; larger ones are read from their files row by row.
_IN_MEMORY_BYTES = 512 * 2**20


def feed_rank(
    dataset: Dataset,
    batches: BatchPlan,
    *,
    seed: int,
    first_step: int,
    last_step: int,
    rank: int,
    world_size: int,
    threads: int,
) -> Any:
    """Return the `tf.data.Dataset` of one rank for the steps from `first_step` up to and without `last_step`.

    The order of an epoch is computed once, when the epoch comes; from there on no Python runs for data in memory.

    Args:
        dataset: The prepared rows.
        batches: How they become steps.
        seed: Of the order.
        first_step: From 0, over the whole training.
        last_step: Likewise; epochs may begin and end in between.
        rank: Which slice of a global batch.
        world_size: Number of slices.
        threads: Threads that reading may use.
    """
    per_epoch = batches.steps_per_epoch

    def list_rows(epoch: np.int64) -> RowNumbers:
        order = order_epoch(seed, int(epoch), batches.rows)
        steps = slice_epoch(order, batches.global_batch_size, rank, world_size)
        begin = int(epoch) * per_epoch
        return steps[max(first_step - begin, 0) : max(last_step - begin, 0)]

    def read_epoch(epoch: Any) -> Any:
        rows = tf.numpy_function(list_rows, [epoch], tf.int64, stateful=False)
        return tf.data.Dataset.from_tensor_slices(
            tf.ensure_shape(rows, (None, batches.global_batch_size // world_size))
        )

    epochs = tf.data.Dataset.range(first_step // per_epoch, -(-last_step // per_epoch))
    steps = epochs.flat_map(read_epoch).map(_choose_reader(dataset))
    return steps.prefetch(2).with_options(choose_options(threads))


def _choose_reader(dataset: Dataset) -> Any:
    if dataset.bytes <= _IN_MEMORY_BYTES:
        x, y = tf.constant(np.asarray(dataset.x)), tf.constant(np.asarray(dataset.y))
        return lambda rows: (tf.gather(x, rows), tf.gather(y, rows))
    return lambda rows: _read_mapped(dataset, rows)


def _read_mapped(dataset: Dataset, rows: Any) -> Any:
    kinds = [tf.as_dtype(dataset.x.dtype), tf.as_dtype(dataset.y.dtype)]
    x, y = tf.numpy_function(lambda chosen: (dataset.x[chosen], dataset.y[chosen]), [rows], kinds, stateful=False)
    return (
        tf.ensure_shape(x, (rows.shape[0], *dataset.x.shape[1:])),
        tf.ensure_shape(y, (rows.shape[0], *dataset.y.shape[1:])),
    )


def choose_options(threads: int) -> Any:
    """Return how a pipeline is run: in order, on its own few threads, never sharded by TensorFlow."""
    options = tf.data.Options()
    options.deterministic = True
    options.threading.private_threadpool_size = threads  # K12: by default one thread a core in every rank
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    return options
