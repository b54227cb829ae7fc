"""A rank's rows: exactly its slices of the global batches, from one step to another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import mxnet as mx
import numpy as np
from numpy.typing import NDArray

from training.data.batches import order_epoch, slice_epoch
from training.data.dataset import Dataset
from training.plan.batches import BatchPlan

Rows = tuple[NDArray[Any], NDArray[Any]]


def feed_rank(
    dataset: Dataset, batches: BatchPlan, *, seed: int, epoch: int, first: int, rank: int, world_size: int
) -> Iterator[Rows]:
    """Yield features and labels of one rank for the steps of `epoch` from its step `first` (from 0) on."""
    order = order_epoch(seed, epoch, batches.rows)
    for rows in slice_epoch(order, batches.global_batch_size, rank, world_size)[first:]:
        yield dataset.x[rows], dataset.y[rows]


def make_array(values: NDArray[Any], context: Any) -> Any:
    """Return `values` on a device, of the same type; MXNet's own function would make 32-bit floats of all."""
    if values.dtype == np.bool_:
        values = values.astype(np.int32)
    return mx.nd.array(np.ascontiguousarray(values), ctx=context, dtype=values.dtype)


def cut_equally(values: NDArray[Any], parts: int) -> list[NDArray[Any]]:
    """Return consecutive parts of the rows, as equal as can be."""
    return np.array_split(values, parts)
