"""Which rows make up which step: a pure function of seed, epoch, rows and global batch (ADR 0003).

The order of an epoch comes from Philox, a counter-based generator (Salmon et al. 2011, "Parallel random numbers: as
easy as 1, 2, 3"), keyed by (seed, epoch): any epoch can be had without the ones before it, on any rank. Rows are
ordered by their raw 64-bit draws rather than by `Generator.permutation`, whose stream NumPy may change between versions
(NEP 19); raw draws stay. The number of ranks appears only where a step is cut into slices, so it can never change the
order.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from training.plan.batches import choose_per_rank_batch_size

RowNumbers = NDArray[np.int64]

_WORD = 2**64 - 1
#: Stream of the split into training and validation rows; no epoch has this number.
SPLIT_STREAM = _WORD


def shuffle_rows(seed: int, stream: int, rows: int) -> RowNumbers:
    """Return the numbers 0 to `rows` - 1 in an order that `seed` and `stream` alone decide.

    Returns:
        Shape (rows,), int64.
    """
    generator = np.random.Philox(key=np.array([seed & _WORD, stream & _WORD], dtype=np.uint64))
    return np.argsort(generator.random_raw(rows), kind="stable").astype(np.int64, copy=False)


def order_epoch(seed: int, epoch: int, rows: int) -> RowNumbers:
    """Return the row numbers of `epoch` (from 0) in the order in which they are trained on.

    Returns:
        Shape (rows,), int64.
    """
    return shuffle_rows(seed, epoch, rows)


def slice_epoch(order: RowNumbers, global_batch_size: int, rank: int, world_size: int) -> RowNumbers:
    """Return what `rank` trains on in each step of an epoch: its contiguous part of each global batch.

    Step t of the epoch is `order[t * global_batch_size : (t + 1) * global_batch_size]`; the rest of the order, which
    does not fill a step, is left out.

    Args:
        order: Row numbers of the epoch, shape (rows,).
        global_batch_size: Rows of a step over all ranks.
        rank: From 0.
        world_size: Number of ranks.

    Returns:
        Shape (steps_per_epoch, global_batch_size / world_size), int64.

    Raises:
        SpecError: The batch cannot be cut into equal parts.
    """
    per_rank = choose_per_rank_batch_size(global_batch_size, world_size)
    steps = count_steps(len(order), global_batch_size)
    batches = order[: steps * global_batch_size].reshape(steps, global_batch_size)
    return batches[:, rank * per_rank : (rank + 1) * per_rank]


def count_steps(rows: int, global_batch_size: int) -> int:
    """Return the number of whole steps in an epoch.

    >>> count_steps(103, 8)
    12
    """
    return rows // global_batch_size
