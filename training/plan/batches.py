"""The arithmetic of deterministic global batches (ADR 0003), without the rows themselves.

A step is `global_batch_size` rows over all ranks together; rank r of n takes the r-th n-th of them. An epoch has as
many whole steps as fit in its rows. The rest is dropped; because the order of the rows is another one in each epoch, no
row is dropped for ever.
"""

from __future__ import annotations

from dataclasses import dataclass

from training.errors import spec_error


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchPlan:
    """How the rows of an epoch become steps.

    Attributes:
        global_batch_size: Rows of a step over all ranks together.
        per_rank_batch_size: Rows of a step on one rank.
        rows: Training rows.
        steps_per_epoch: Steps of an epoch, the same on every rank.
        dropped_rows_per_epoch: Rows that an epoch leaves out, other ones each time.
    """

    global_batch_size: int
    per_rank_batch_size: int
    rows: int
    steps_per_epoch: int
    dropped_rows_per_epoch: int

    def __str__(self) -> str:
        dropped = self.dropped_rows_per_epoch
        rest = (
            f"; {dropped} rows a time do not fill a step and are left out, other ones in each epoch" if dropped else ""
        )
        return (
            f"{self.steps_per_epoch} steps an epoch of {self.global_batch_size} rows "
            f"({self.per_rank_batch_size} a replica) from {self.rows} rows{rest}"
        )


def choose_per_rank_batch_size(global_batch_size: int, world_size: int) -> int:
    """Return the rows of a step on one rank.

    >>> choose_per_rank_batch_size(64, 2)
    32

    Raises:
        SpecError: The global batch cannot be cut into equal parts.
    """
    if world_size < 1:
        raise spec_error("cluster.workers", f"must be at least 1. Received: {world_size}.")
    if global_batch_size % world_size == 0 and global_batch_size > 0:
        return global_batch_size // world_size
    below = global_batch_size // world_size * world_size
    nearest = [str(size) for size in (below, below + world_size) if size > 0]
    raise spec_error(
        "train.batch_size",
        f"must divide by the number of ranks, {world_size} (it counts the rows of all ranks together). "
        f"Received: {global_batch_size}.",
        f"The nearest that would do: {' or '.join(nearest)}.",
    )


def plan_batches(rows: int, global_batch_size: int, world_size: int) -> BatchPlan:
    """Return how `rows` training rows become steps on `world_size` ranks.

    >>> plan_batches(103, 8, 2).steps_per_epoch
    12

    Raises:
        SpecError: The batch cannot be cut into equal parts, or an epoch would have no step.
    """
    per_rank = choose_per_rank_batch_size(global_batch_size, world_size)
    steps, dropped = divmod(rows, global_batch_size)
    if steps < 1:
        largest = rows // world_size * world_size
        remedy = f"Set train.batch_size to {largest} or less" if largest > 0 else f"{world_size} rows are the least"
        raise spec_error(
            "train.batch_size",
            f"an epoch must have at least one step. Received: {rows} training rows, "
            f"a global batch of {global_batch_size} rows, {world_size} {'rank' if world_size == 1 else 'ranks'}.",
            f"{remedy}, or give more rows.",
        )
    return BatchPlan(
        global_batch_size=global_batch_size,
        per_rank_batch_size=per_rank,
        rows=rows,
        steps_per_epoch=steps,
        dropped_rows_per_epoch=dropped,
    )
