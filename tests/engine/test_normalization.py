"""Batch normalization, whose averages no gradient moves: each replica updates its own."""

import numpy as np
import pytest

pytestmark = pytest.mark.engine
SYNCHRONIZING = ["mirrored", "central_storage", "multi_worker_mirrored"]
MOVING_MEAN = "model.0002"  # after what is learned
NOTE = "note: norm: counts the rows of each replica by itself, so that weights depend on their number"


@pytest.mark.parametrize("strategy", [*SYNCHRONIZING, "horovod"])
def test_a_moving_average_is_that_of_all_rows(one, gang_by, strategy):
    """Not the first replica's, of its own rows. It is of what the model is given, whatever the weights are."""
    alone, together = one.newest("normalized"), gang_by(strategy).newest("normalized")

    assert np.abs(alone[MOVING_MEAN]).max() > 1e-3
    assert together[MOVING_MEAN] == pytest.approx(alone[MOVING_MEAN], abs=1e-7)


@pytest.mark.parametrize("strategy", ["single", *SYNCHRONIZING, "horovod"])
def test_it_is_said_that_weights_depend_on_the_number_of_replicas(gang_by, strategy):
    gang = gang_by(strategy)
    can_count_all = strategy in SYNCHRONIZING

    assert gang.chief.text.count(NOTE) == {"single": 0, "horovod": 2}.get(strategy, 1)
    assert gang.chief.text.count(f"{NOTE}, unless it has synchronized=True") == can_count_all


@pytest.mark.parametrize("strategy", SYNCHRONIZING)
def test_what_counts_the_rows_of_all_replicas_obeys_the_law(one, gang_by, strategy):
    alone, together = one.newest("synchronized"), gang_by(strategy).newest("synchronized")

    assert alone.keys() == together.keys()
    assert max(float(np.abs(alone[key] - together[key]).max()) for key in alone) < 1e-5
