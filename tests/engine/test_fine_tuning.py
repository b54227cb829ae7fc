"""Fine-tuning: what is loaded, what is skipped, what is frozen, and that it is said."""

import numpy as np
import pytest
from test_laws import TOLERANCE, largest_difference

pytestmark = pytest.mark.engine


def test_frozen_layers_keep_the_weights_that_were_loaded(one, two):
    source, tuned = two.newest("adam"), one.newest("tuned")
    for name in ("model.0000", "model.0001"):
        np.testing.assert_array_equal(tuned[name], source[name])
    assert not np.array_equal(tuned["model.0002"], source["model.0002"])


def test_tuning_obeys_the_law(one, two):
    assert largest_difference(one.newest("tuned"), two.newest("tuned")) < TOLERANCE


def test_what_was_loaded_and_frozen_is_said(two):
    text = two.chief.text
    assert "4 loaded (dense/kernel, dense/bias, dense_1/kernel, dense_1/bias)" in text
    assert "frozen: dense; 1290 of 9610 parameters are trained" in text


def test_a_head_of_another_shape_is_left_as_built_and_said(one):
    assert "2 loaded (dense/kernel, dense/bias); 2 of another shape, as built (dense_1/kernel, dense_1/bias)" in (
        one.chief.text
    )
    assert one.chief.result("other_head")["steps"] == 23


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("other_model", "model.initialize_from: must have at least one weight with the layer name and shape"),
        ("freeze_unknown", "model.freeze: must match the name of a layer. Received: dense_7. Did you mean 'dense_1'?"),
        ("freeze_all", "model.freeze: must leave something to be trained. Received: dense, dense_1."),
    ],
)
def test_what_cannot_be_tuned_is_refused(one, name, says):
    assert one.chief.failures[name]["error"] == "SpecError"
    assert one.chief.failures[name]["message"].startswith(says)
