"""Checkpoints: a training that was cut off goes on to the same weights, in mid-epoch and at another number of ranks."""

import json

import pytest
from teams import MIDDLE
from test_laws import TOLERANCE, largest_difference

pytestmark = pytest.mark.engine


@pytest.mark.parametrize("gang", ["one", "two", "three"])
def test_resumed_in_mid_epoch_equals_undisturbed(gang, two, request):
    """K35: weights, optimizer and the metrics of the epoch that was begun; the checkpoint is of two ranks."""
    gang = request.getfixturevalue(gang)
    assert largest_difference(gang.newest("resumed"), two.newest("momentum")) < TOLERANCE
    assert gang.metrics("resumed")[-1] == pytest.approx(two.metrics("momentum")[-1], rel=1e-5)


def test_resumed_at_the_end_of_an_epoch_equals_undisturbed(two):
    """K35."""
    assert largest_difference(two.newest("resumed_at_epoch"), two.newest("momentum")) < TOLERANCE


def test_no_step_is_trained_twice(two):
    """K42: the step axis goes on."""
    steps = [event.step for event in two.chief.of("resumed", "step")]
    assert steps[0] > MIDDLE
    assert steps[-1] == 46
    assert [event.epoch for event in two.chief.of("resumed", "epoch")] == [2]
    assert f"going on after step {MIDDLE} of 46" in two.chief.text


def test_only_the_chief_writes_and_every_checkpoint_is_whole(two, site):
    """K34."""
    told = [event.step for event in two.chief.of("momentum", "checkpoint")]
    assert told == [5, 10, 15, 20, 23, 25, 30, 35, 40, 45, 46]
    assert two.ranks[1].of("momentum", "checkpoint") == []
    folders = sorted(site.checkpoints(2, "momentum").iterdir())
    assert [int(folder.name[5:]) for folder in folders] == told
    for folder in folders:
        meta = json.loads((folder / "meta.json").read_text())
        assert (folder / "state.safetensors").stat().st_size == meta["bytes"]


def test_checkpoint_of_other_rows_is_refused(one):
    """K36: other parameters are, under every strategy, in `test_every_strategy.py`."""
    failure = one.chief.failures["other_data"]
    assert failure["error"] == "SpecError"
    assert "where data was " in failure["message"]
