"""Deterministic global batches: promise 2, ADR 0003."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.data.batches import count_steps, order_epoch, shuffle_rows, slice_epoch
from training.errors import SpecError
from training.plan.batches import plan_batches

ranks = st.integers(1, 6)
per_rank = st.integers(1, 9)
row_counts = st.integers(0, 300)
seeds = st.integers(0, 2**32 - 1)


def trained_on(seed, epoch, rows, batch, world_size):
    order = order_epoch(seed, epoch, rows)
    return [slice_epoch(order, batch, rank, world_size) for rank in range(world_size)]


@given(seeds, st.integers(0, 50), row_counts, ranks, per_rank)
def test_ranks_together_train_on_the_global_batch(seed, epoch, rows, world_size, per_rank):
    """K24: the union over ranks is the batch, overlaps are empty."""
    batch = world_size * per_rank
    parts = trained_on(seed, epoch, rows, batch, world_size)
    whole = slice_epoch(order_epoch(seed, epoch, rows), batch, 0, 1)
    assert np.array_equal(np.concatenate(parts, axis=1), whole)
    assert len(np.unique(whole)) == whole.size
    assert whole.shape == (count_steps(rows, batch), batch)


@given(seeds, row_counts, per_rank)
def test_world_size_never_changes_the_order(seed, rows, per_rank):
    """K24."""
    batch = 12 * per_rank
    one = slice_epoch(order_epoch(seed, 3, rows), batch, 0, 1)
    for world_size in (2, 3, 4, 6, 12):
        assert np.array_equal(np.concatenate(trained_on(seed, 3, rows, batch, world_size), axis=1), one)


@given(seeds, ranks, per_rank, row_counts)
def test_every_rank_has_as_many_steps(seed, world_size, per_rank, rows):
    """K21."""
    lengths = {len(part) for part in trained_on(seed, 0, rows, world_size * per_rank, world_size)}
    assert len(lengths) == 1


@given(seeds, st.integers(0, 1000), st.integers(20, 300))
def test_order_repeats_with_its_seed_and_changes_with_epoch_and_seed(seed, epoch, rows):
    """K24."""
    order = order_epoch(seed, epoch, rows)
    assert np.array_equal(order, order_epoch(seed, epoch, rows))
    assert sorted(order.tolist()) == list(range(rows))
    assert not np.array_equal(order, order_epoch(seed, epoch + 1, rows))
    assert not np.array_equal(order, order_epoch(seed + 1, epoch, rows))


def test_order_is_the_same_for_ever():
    """A checkpoint of an older version must resume on the same rows: raw Philox draws, not a NumPy shuffle."""
    assert order_epoch(7, 0, 10).tolist() == [8, 4, 1, 6, 3, 2, 7, 5, 9, 0]
    assert shuffle_rows(-1, 3, 5).tolist() == shuffle_rows(2**64 - 1, 3, 5).tolist()


def test_no_row_is_left_out_for_ever():
    """103 rows in batches of 8 leave out 7 an epoch, but other ones each time (K21)."""
    seen = set()
    for epoch in range(6):
        seen |= set(slice_epoch(order_epoch(1, epoch, 103), 8, 0, 1).ravel().tolist())
    assert seen == set(range(103))


@pytest.mark.parametrize(("rows", "batch", "world_size", "steps", "dropped"), [(103, 8, 2, 12, 7), (103, 9, 3, 11, 4)])
def test_plan_counts_steps_and_dropped_rows(rows, batch, world_size, steps, dropped):
    """K21."""
    plan = plan_batches(rows, batch, world_size)
    assert (plan.steps_per_epoch, plan.dropped_rows_per_epoch) == (steps, dropped)
    assert plan.per_rank_batch_size * world_size == batch
    assert f"{dropped} rows" in str(plan)


@pytest.mark.parametrize(("batch", "nearest"), [(10, "8 or 12"), (2, "4"), (0, "4")])
def test_batch_that_does_not_divide_names_the_nearest_that_do(batch, nearest):
    """K22."""
    with pytest.raises(SpecError, match=r"train\.batch_size: must divide by the number of ranks, 4") as caught:
        plan_batches(100, batch, 4)
    assert f"Received: {batch}." in str(caught.value)
    assert f"would do: {nearest}." in str(caught.value)


def test_too_few_rows_for_a_step():
    """K25: rows, ranks and batch are in the message."""
    with pytest.raises(SpecError, match="3 training rows, a global batch of 32 rows, 2 ranks") as caught:
        plan_batches(3, 32, 2)
    assert "Set train.batch_size to 2 or less" in str(caught.value)


def test_fewer_rows_than_ranks():
    """K25."""
    with pytest.raises(SpecError, match="4 rows are the least, or give more rows"):
        plan_batches(3, 32, 4)


@given(st.integers(-5, 400), st.integers(0, 200), st.integers(0, 9))
def test_plan_is_whole_or_refused(rows, batch, world_size):
    try:
        plan = plan_batches(rows, batch, world_size)
    except SpecError:
        return
    assert plan.steps_per_epoch >= 1
    assert plan.steps_per_epoch * batch + plan.dropped_rows_per_epoch == rows
    assert 0 <= plan.dropped_rows_per_epoch < batch
