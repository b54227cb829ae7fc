"""Strategy `parameter_server` with two workers, for which the equivalence law does not hold: what does all the same.

With one worker it holds, and `test_laws.py` shows it.
"""

import re

import numpy as np
import pytest
from teams import ASYNCHRONOUS, BATCH, MIDDLE, PER_EPOCH

from training.checkpoints.tensors import read_tensors
from training.data.batches import order_epoch

pytestmark = pytest.mark.engine
WORKERS = 2


def read_checkpoint(gang, name, step):
    folder = gang.site.checkpoints(ASYNCHRONOUS, name) / f"step-{step:08d}"
    return read_tensors(folder / "state.safetensors")


@pytest.mark.parametrize("name", ["add_at_once", "fit_with_servers"])
def test_shims_are_still_needed(apart, name):
    """When one of these fails, Keras has repaired it (keras#18624): see shims/asynchronous_updates.py."""
    (answer,) = [told["answer"] for told in apart.chief.told["UPSTREAM"] if told["name"] == name]
    assert answer != "works"


@pytest.mark.parametrize("name", ["momentum", "user", "dropout", "cnn"])
def test_it_trains(apart, name):
    """A layer and a rate schedule of the user's own; dropout and batch normalisation update variables, too."""
    assert name not in apart.chief.failures, apart.chief.failures[name]
    losses = [metrics["loss"] for metrics in apart.metrics(name)]
    assert losses == sorted(losses, reverse=True)
    assert all(np.isfinite(array).all() for array in apart.newest(name).values())
    assert (apart.site.model(ASYNCHRONOUS, name) / "MLmodel").exists()


def test_it_comes_to_what_one_process_does(one, apart):
    """Two updates a step, with some of the others' missing: not the same weights, but as good ones.

    The loss of the epoch, 0.26 to 0.29 in seven trainings where one process comes to 0.57, tells it: it is a mean over
    23 steps. Accuracy on the held-out rows after the last of them swings from 0.82 to 0.90 with its momentum.
    """
    alone, together = one.metrics("momentum")[-1], apart.metrics("momentum")[-1]
    assert together["loss"] < alone["loss"]


def test_no_update_is_lost(apart):
    """Optimizers count their updates: two a step."""
    for step in (5, PER_EPOCH, 2 * PER_EPOCH):
        assert read_checkpoint(apart, "momentum", step)["optimizer.0000"] == WORKERS * step


def test_every_row_is_taken_once_whoever_takes_it(apart):
    """K21, K24: the metrics of an epoch are those of exactly the rows of its steps."""
    labels = np.load(apart.site.datasets["numbered"] / "train_y.npy")
    rows = len(labels) // BATCH * BATCH
    assert len(apart.metrics("rows")) == 2
    for epoch, metrics in enumerate(apart.metrics("rows")):
        seen = labels[order_epoch(7, epoch, len(labels))[:rows]].astype(np.float64)
        assert metrics["label"] == pytest.approx(seen.mean(), rel=1e-6)
        assert metrics["squared_label"] == pytest.approx(np.square(seen).mean(), rel=1e-6)


def test_a_checkpoint_is_of_a_moment_at_which_nothing_changes(apart):
    """K34, K35: in mid-epoch, the metrics count the rows of all steps before it, and of none after it."""
    told = [event.step for event in apart.chief.of("momentum", "checkpoint")]
    assert told == [5, 10, 15, 20, 23, 25, 30, 35, 40, 45, 46]
    counts = [array for name, array in read_checkpoint(apart, "momentum", MIDDLE).items() if name.startswith("metric")]
    assert (MIDDLE - PER_EPOCH) * BATCH in counts


def test_it_goes_on_from_a_checkpoint_of_another_strategy(apart):
    """K35, K42."""
    steps = [event.step for event in apart.chief.of("resumed", "step")]
    assert steps == sorted(set(steps))
    assert (steps[0], steps[-1]) == (MIDDLE + 1, 2 * PER_EPOCH)
    assert apart.newest("resumed")["optimizer.0000"] == MIDDLE + WORKERS * (2 * PER_EPOCH - MIDDLE)


def test_another_strategy_goes_on_from_its_checkpoint(later):
    """K35."""
    assert f"going on after step {MIDDLE} of 46" in later.chief.text
    assert later.newest("back")["optimizer.0000"] == WORKERS * MIDDLE + 2 * PER_EPOCH - MIDDLE
    assert later.metrics("back")[-1]["val_accuracy"] > 0.9


def test_scaling_counts_workers_and_warm_up_counts_steps(apart):
    """K29: whatever the number of updates in a step; the rate is read while later steps may be at work."""
    rates = [event.metrics["learning_rate"] for event in apart.chief.of("linear", "step")]
    assert rates == sorted(rates)
    assert 0.05 < rates[0] < 0.05 * 1.6
    assert rates[-1] == pytest.approx(0.1)


def test_infinite_loss_stops_at_its_step(apart):
    """K30: the checkpoint of step 4 knows nothing of step 5, and no model is saved.

    Where the share with the outlier is applied first, the other one of its step has no finite loss either.
    """
    failure = apart.chief.failures["outlier"]
    assert (failure["error"], failure["step"]) == ("DivergedError", 5)
    assert re.search(r"Received: \S+ at step 5 \(epoch 1\) on replicas? (0, )?1\.", failure["message"])
    assert [event.step for event in apart.chief.of("outlier", "checkpoint")] == [2, 4]
    assert all(np.isfinite(array).all() for array in read_checkpoint(apart, "outlier", 4).values())
    assert not apart.site.model(ASYNCHRONOUS, "outlier").exists()
