"""A subclass of `keras.Model` in half precision, with a loss of its own; optimizers that clip, under every strategy."""

import numpy as np
import pytest
from own_rows import HALF_MIDDLE, HALF_STEPS
from teams import STRATEGIES

from training.checkpoints.tensors import read_tensors

pytestmark = pytest.mark.engine
#: `pipeline` refuses loss scales and models whose order of layers only their code knows.
IN_HALF_PRECISION = [strategy for strategy in STRATEGIES if strategy != "pipeline"]
SYNCHRONOUS = [strategy for strategy in IN_HALF_PRECISION if strategy != "parameter_server"]
#: The numbers between have 11 bits, or 8.
TOLERANCES = {"mixed_float16": 3e-4, "mixed_bfloat16": 2e-3}


def largest_difference(these, those):
    assert these.keys() == those.keys()
    return max(float(np.abs(these[name].astype(np.float64) - those[name]).max()) for name in these)


def numbers(tensors):
    """Return the scalars: the optimizer's counters and its loss scale."""
    return {array.item() for array in tensors.values() if array.shape == ()}


@pytest.mark.parametrize("strategy", SYNCHRONOUS)
@pytest.mark.parametrize("name", TOLERANCES)
def test_weights_and_loss_scale_are_those_of_one_process(one, gang_by, strategy, name):
    """Clipped by the norm of each gradient, or of all of them; a step whose gradient is infinite is made by nobody."""
    alone, together = one.newest(name), gang_by(strategy).newest(name)

    assert all(array.dtype == np.float32 for key, array in together.items() if key.startswith("model."))
    assert largest_difference(alone, together) < TOLERANCES[name]


@pytest.mark.parametrize("strategy", IN_HALF_PRECISION)
def test_a_gradient_that_is_infinite_on_one_replica_halves_the_loss_scale_of_all(gang_by, strategy):
    """Of step 6, or of one worker's share of it, nothing is seen in the weights."""
    gang = gang_by(strategy)
    updates = 2 * HALF_STEPS if strategy == "parameter_server" else HALF_STEPS

    assert {updates - 1, 2.0**14} <= numbers(gang.newest("mixed_float16"))
    assert np.isfinite(gang.metrics("mixed_float16")[-1]["loss"])


@pytest.mark.parametrize("strategy", SYNCHRONOUS)
def test_the_loss_scale_is_part_of_a_checkpoint(two, gang_by, strategy):
    """K35: it is gone on with, under another strategy too."""
    middle = two.site.checkpoints(2, "mixed_float16") / f"step-{HALF_MIDDLE:08d}"

    assert {HALF_MIDDLE - 1, 2.0**14} <= numbers(read_tensors(middle / "state.safetensors"))
    resumed = gang_by(strategy).newest("resumed_float16")
    assert largest_difference(two.newest("mixed_float16"), resumed) < TOLERANCES["mixed_float16"]
