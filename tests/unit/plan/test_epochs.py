"""What an epoch of a `build_dataset` is."""

import pytest

from training.errors import SpecError
from training.plan.epochs import EpochPlan, ShardSize, plan_epoch, refuse_steps

LIMIT_S = 9.0


def plan(asked, *batches, sharded=False, **more):
    sizes = [ShardSize(batches=number, **more) for number in batches]
    return plan_epoch(asked, sizes, sharded=sharded, limit_s=LIMIT_S)


def message(asked, *batches, **more):
    with pytest.raises(SpecError) as caught:
        plan(asked, *batches, **more)
    return str(caught.value)


def test_batches_of_a_known_number_are_an_epoch():
    """K23: counted once."""
    assert plan(None, 10) == EpochPlan(steps=10, is_pass=True, counted=True)


def test_steps_asked_for_cut_each_pass():
    assert plan(8, 10) == EpochPlan(steps=8, is_pass=True)


@pytest.mark.parametrize("batches", [(None,), (10, None)])
def test_what_nobody_can_count_goes_on_from_epoch_to_epoch(batches):
    """K23: a generator that never ends would begin anew, with the same rows, in each epoch."""
    assert plan(8, *batches) == EpochPlan(steps=8, is_pass=False)


def test_uneven_shards_have_equal_steps_and_it_is_said():
    """K21."""
    epoch = plan(None, 13, 12, sharded=True, left_out=3)

    assert epoch.steps == 12
    assert epoch.notes == (
        "the shards have 13, 12 batches: an epoch is 12 steps, the rest is left out",
        "6 rows a pass fill no whole batch and are left out",
    )


def test_rows_that_all_ranks_have_are_left_out_once():
    assert plan(None, 8, 8, left_out=7).notes == ("7 rows a pass fill no whole batch and are left out",)


def test_an_endless_dataset_needs_the_number_of_steps():
    """K23."""
    assert message(None, None, endless=True) == (
        "train.steps_per_epoch: is missing; the dataset of build_dataset has no end. Say how many make an epoch."
    )


def test_a_dataset_that_takes_too_long_to_count_needs_it_too():
    """K23: nobody can tell a generator that never ends from a long one."""
    assert "train.steps_per_epoch: is missing; the batches of build_dataset were not counted within" in message(
        None, 10, None
    )


def test_more_steps_than_a_pass_has_are_refused():
    """K23."""
    assert message(12, 12, 10, sharded=True).startswith("train.steps_per_epoch: asked 12 steps, got 10 a pass.")


def test_ranks_that_count_differently_do_not_have_the_same_rows():
    """K24."""
    assert "must give every rank the same batches with data.sharding: ganger. Received: 10, 9 batches" in message(
        None, 10, 9
    )


def test_no_whole_batch_is_no_epoch():
    """K25."""
    assert "an epoch must have at least one step" in message(None, 3, 0, sharded=True)


def test_a_pass_that_is_shorter_than_when_it_was_counted_is_told_so():
    error = refuse_steps(12, 11, "at epoch 3", counted=True)

    assert "must give as many batches in each pass. Received: 11 at epoch 3, 12 when counted." in str(error)
