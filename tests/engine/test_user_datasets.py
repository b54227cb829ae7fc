"""Rows of the model file's own `build_dataset`, several inputs and outputs, under every strategy."""

import numpy as np
import pytest
from own_rows import BATCH, MIDDLE, PER_EPOCH
from teams import STRATEGIES

pytestmark = pytest.mark.engine
TOLERANCE = 1e-5
SYNCHRONOUS = [strategy for strategy in STRATEGIES if strategy not in ("parameter_server", "pipeline")]
NAMES = {"loss", "kind_loss", "size_loss", "kind_accuracy", "size_mae"}


def largest_difference(these, those):
    assert these.keys() == those.keys()
    return max(float(np.abs(these[name].astype(np.float64) - those[name]).max()) for name in these)


@pytest.mark.parametrize("strategy", SYNCHRONOUS)
@pytest.mark.parametrize("name", ["cut", "sharded"])
def test_weights_are_those_of_one_process(one, gang_by, strategy, name):
    """K24: cut by Ganger or by the function, and never by both, the global batches are the same.

    Gradients are clipped by value: those of the global batch, not of each replica.
    """
    assert largest_difference(one.newest("cut"), gang_by(strategy).newest(name)) < TOLERANCE


@pytest.mark.parametrize("strategy", SYNCHRONOUS)
def test_a_step_in_mid_epoch_is_gone_on_from(two, gang_by, strategy):
    """K35: from the checkpoint that another strategy wrote; the steps before it are passed over."""
    gang = gang_by(strategy)

    assert f"going on after step {MIDDLE} of {2 * PER_EPOCH}" in gang.chief.text
    assert largest_difference(two.newest("cut"), gang.newest("resumed_cut")) < TOLERANCE


@pytest.mark.parametrize("strategy", SYNCHRONOUS)
def test_metrics_of_each_output_have_its_name(one, gang_by, strategy):
    for alone, together in zip(one.metrics("cut"), gang_by(strategy).metrics("cut"), strict=True):
        assert together == pytest.approx(alone, rel=1e-5)
        assert together.keys() == NAMES | {f"val_{name}" for name in NAMES}
        for prefix in ("", "val_"):
            parts = together[f"{prefix}kind_loss"] + together[f"{prefix}size_loss"]
            assert together[f"{prefix}loss"] == pytest.approx(parts, rel=1e-5)


def test_parameter_servers_train_on_own_rows_too(gang_by):
    gang = gang_by("parameter_server")

    assert gang.chief.result("cut")["steps"] == 2 * PER_EPOCH
    assert gang.metrics("cut")[-1].keys() == NAMES | {f"val_{name}" for name in NAMES}


def test_a_model_of_two_inputs_is_not_split_into_stages(gang_by):
    """K31."""
    assert (
        "must have one input to be split into stages. Received: 2 ("
        in gang_by("pipeline").chief.failures["cut"]["message"]
    )


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_fewer_steps_than_asked_for_are_no_green_end(gang_by, strategy):
    """K23: where the size is known, before the first step; else when the rows end, on every rank."""
    for rank in gang_by(strategy).ranks:
        for name, where in (("too_few", "a pass"), ("ends_early", "at epoch 1")):
            failure = rank.failures[name]
            assert failure["error"] == "SpecError"
            assert failure["message"].startswith(f"train.steps_per_epoch: asked 12 steps, got 10 {where}.")
        assert rank.of("too_few", "step") == []
        assert rank.of("ends_early", "epoch") == []


@pytest.mark.parametrize("strategy", ["multi_worker_mirrored", "horovod"])
def test_shards_of_two_lengths_have_equal_steps(gang_by, strategy):
    """K21: 95 rows are 8 batches of 6 on one rank and 7 on the other."""
    gang = gang_by(strategy)

    assert "the shards have 8, 7 batches: an epoch is 7 steps, the rest is left out" in gang.chief.text
    assert gang.chief.result("uneven")["steps"] == 7


@pytest.mark.parametrize("strategy", ["multi_worker_mirrored", "horovod"])
def test_ranks_that_should_have_the_same_rows_must(gang_by, strategy):
    """K24."""
    for rank in gang_by(strategy).ranks:
        assert (
            "must give every rank the same batches with data.sharding: ganger" in rank.failures["differing"]["message"]
        )
        assert "other ones on rank 1 than on rank 0" in rank.failures["differing"]["message"]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_batch_is_global_under_every_strategy(gang_by, strategy):
    """K22."""
    gang = gang_by(strategy)
    share = BATCH // gang.replicas

    assert f"{PER_EPOCH} steps an epoch of {BATCH} rows ({share} a replica) from build_dataset" in gang.chief.text


def test_rows_that_fill_no_step_are_told(one):
    assert "7 rows a pass fill no whole batch and are left out" in one.chief.text


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_fewer_rows_than_a_batch_are_refused(gang_by, strategy):
    """K25."""
    for rank in gang_by(strategy).ranks:
        assert "at least one batch of batch_size rows, 12 here. Received: no batch." in rank.failures["tiny"]["message"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("endless", "train.steps_per_epoch: is missing; the dataset of build_dataset has no end."),
        ("endless_generator", "train.steps_per_epoch: is missing; the batches of build_dataset were not counted"),
        ("unbatched", "Received: a first batch of 7 rows."),
        ("no_dataset", "Received: a builtins.generator. Wrap a generator by tf.data.Dataset.from_generator."),
        ("no_such_parameter", "Did you mean 'rows'?"),
        ("nothing_held_out", "evaluate.require: needs held-out rows."),
        ("without_function", "data.source: needs a function build_dataset in the model file."),
    ],
)
def test_what_does_not_do_is_refused_before_the_first_step(one, name, words):
    """K23 where nobody can know how many steps there are; else the message of each mistake."""
    failure = one.chief.failures[name]

    assert failure["error"] == "SpecError"
    assert words in failure["message"]
    assert one.chief.of(name, "step") == []


def test_evaluation_finds_the_metrics_of_the_last_epoch(one, two):
    """Whatever the batch: each loss is weighed by rows."""
    result = one.chief.result("evaluated_cut")
    last = two.metrics("cut")[-1]

    assert result["rows"] == 31
    assert result["metrics"] == pytest.approx({name: last[f"val_{name}"] for name in NAMES}, rel=1e-5)


def test_inputs_and_outputs_have_names_in_the_saved_model(two, site):
    text = (site.model(2, "cut") / "MLmodel").read_text()

    assert all(f'"name": "{name}"' in text for name in ("signal", "age", "kind", "size"))
