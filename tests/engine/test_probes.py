"""What the engine does in one process: its feed, its checks before training, checkpoints under bad circumstances."""

import hashlib
import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from gang import PYTHON

from training.data.batches import order_epoch, slice_epoch
from training.data.store import prepare_dataset
from training.spec.pipeline import DataSpec

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def output(tmp_path_factory):
    folder = tmp_path_factory.mktemp("probes")
    draw = np.random.default_rng(1)
    np.savez(folder / "rows_103.npz", x=draw.normal(size=(103, 10)).astype("float32"), y=draw.integers(0, 10, 103))
    np.savez(folder / "numbered.npz", x=np.arange(100, dtype="float32")[:, None], y=np.arange(100) % 2)
    settings = {"folder": str(folder)}
    for name in ("rows_103", "numbered"):
        data = DataSpec(source=f"{name}.npz", validation_fraction=0)
        settings[name] = str(prepare_dataset(data, folder, folder / "home", print).path)
    run = subprocess.run(
        [str(PYTHON), str(Path(__file__).with_name("probes.py")), json.dumps(settings)],
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-4000:]
    return run.stdout


@pytest.fixture(scope="module")
def answers(output):
    lines = [json.loads(line[7:]) for line in output.splitlines() if line.startswith("ANSWER ")]
    return {line["name"]: line["value"] for line in lines}


@pytest.mark.parametrize("how", ["feed_from_memory", "feed_from_files"])
def test_four_ranks_are_fed_the_global_batches(answers, how):
    """K24: in each epoch no row twice, another order, and exactly what the arithmetic says."""
    fed = np.array(answers[how])
    assert fed.shape == (4, 16, 3)
    epochs = np.concatenate([fed[rank] for rank in range(4)], axis=1).reshape(2, 96)
    for epoch, rows in enumerate(epochs):
        assert len(set(rows)) == 96
        expected = slice_epoch(order_epoch(7, epoch, 100), 12, 0, 1)
        np.testing.assert_array_equal(rows.reshape(8, 12), expected)
    assert not np.array_equal(*epochs)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        (
            "replicas_that_are_fewer",
            "LaunchError: the strategy must have 2 replicas, as was planned. Received: 1; devices",
        ),
        ("threads_that_come_late", "PreflightError: threads must be set before TensorFlow starts."),
        (
            "strategy_that_is_not_built",
            "PreflightError: train.strategy must be one of single, mirrored, ",
        ),
        ("tpu_that_is_not_there", "PreflightError: a TPU must answer as 'local'. Received: "),
        ("rows_that_fill_no_step", "SpecError: "),
    ],
    ids=["replicas", "threads", "strategy", "tpu", "rows"],
)
def test_what_cannot_be_trained_is_refused(answers, name, says):
    """K03, K12, K25."""
    assert answers[name].startswith(says)


def test_too_few_rows_are_refused_with_the_numbers(answers):
    """K25."""
    assert "103" in answers["rows_that_fill_no_step"]
    assert "104" in answers["rows_that_fill_no_step"]


def test_103_rows_train_in_whole_steps_and_the_rest_is_told(output):
    """K21."""
    assert "8 steps an epoch of 12 rows (12 a replica) from 103 rows; 7 rows a time do not fill a step" in output


def test_every_checkpoint_loads(answers):
    """K34."""
    assert answers["trained_to_the_end"]["steps"] == [24, 21, 18, 16, 15, 12, 9, 8, 6, 3]
    assert all(answers["trained_to_the_end"]["finite"])


def test_damaged_newest_checkpoint_is_passed_over_aloud(answers, output):
    """K37, K35: from the one before, to the same weights and optimizer."""
    assert "step-00000012 is damaged (state.safetensors has 4 bytes instead of" in output
    assert "going on after step 9 of 24" in output
    assert answers["resumed_past_a_damaged_checkpoint"] < 1e-6


def test_full_disk_is_told_with_path_and_sizes(answers):
    """K37."""
    assert answers["disk_that_is_full"].startswith("InfrastructureError: ")
    assert "full/step-00000003 needs more than" in answers["disk_that_is_full"]
    assert "bytes free on its disk" in answers["disk_that_is_full"]


def test_hash_and_norm_are_those_that_the_docstring_promises(answers):
    values = np.array([3, 0, 0, 4, 12], dtype="<f4")
    assert answers["known_weights"] == {"sha256": hashlib.sha256(values.tobytes()).hexdigest(), "norm": 13.0}


def test_stages_train_blocks_tokens_penalties_clipping_and_averages_as_the_unsplit_model_does(answers):
    """Plain rows of layers are in `test_laws.py`, in gangs of real stages."""
    assert max(answers["unlike_layers"].values()) < 1e-5, answers["unlike_layers"]


def test_a_scale_of_the_loss_is_taken_out_of_all_gradients_again(answers):
    assert answers["scaled"] < 1e-6


def test_a_residual_block_stays_in_one_stage(answers):
    """From what is handed around it, `tokens`, to where that is added."""
    assert answers["blocks"] == ["tokens", "add", "norm", "flat", "last"]


def test_variables_and_what_the_optimizer_knows_of_them_are_beside_their_stage(answers):
    places = answers["places"]
    assert places["weights"] == [["CPU:0"], ["CPU:1"]]
    assert set(places["owners"]) == {"CPU:0", "CPU:1"}
    assert places["moments"] == places["owners"]


def test_batches_are_normalised_micro_batch_by_micro_batch(answers):
    """Averages move once for each, in their order."""
    assert answers["normalised_by_micro_batch"]["moved"] > 0.01
    assert answers["normalised_by_micro_batch"]["difference"] < 1e-6


def test_dropout_draws_anew_for_each_micro_batch_whatever_the_schedule(answers):
    told = answers["dropped_by_micro_batch"]
    assert told["1f1b"][0] == pytest.approx(told["expected"], rel=1e-5)
    assert told["1f1b"] == told["gpipe"]


def test_a_model_inside_of_a_model_costs_what_its_layers_do(answers):
    costs = answers["inner_model"]
    assert costs["whole"] == [sum(costs["parts"])]
    assert len(costs["parts"]) == 4


def test_metrics_are_reset_before_the_first_step_takes_them(answers):
    assert answers["awaited"] == ["model.reset_metrics", "await_writes", "step"]


def test_reading_the_clock_does_not_make_stages_wait_for_one_another(answers):
    """Nor is the shim needed any more when TensorFlow itself does not order two readings."""
    assert answers["clocks"] == {"plain": 1, "step": 0}


def test_the_split_is_told_with_what_each_stage_costs(answers):
    head, *stages, three, four = answers["description"]
    assert head.startswith("2 stages, 1f1b, 8 micro-batches of 2 rows: a step takes 0.")
    assert [line.split("  ")[1] for line in stages] == ["tokens ... add", "norm ... made"]
    assert all(words in line for line in stages for words in ("parameters", "% of the cost", "activations", "a step"))
    assert three.startswith("3 stages would take 0.")
    assert four.startswith("4 stages would take 0.")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("masks", "must have no masks to be split into stages, since they do not travel. Received: one of embedding."),
        ("used twice", "must use each layer once to be split into stages. Received: again, used twice."),
        ("subclass", "Received: Own, whose order of layers is known to its own code only."),
        ("two inputs", "must have one input to be split into stages. Received: 2 (left, right)."),
        ("own step", "must leave train_step to Keras to be split into stages. Received: OwnStep, with its own."),
        ("scaled loss", "Received: a LossScaleOptimizer, as mixed_float16 has it. Use mixed_bfloat16."),
        ("own loss", "Received: a loss of losing. Regularize weights instead, or compute it in the loss."),
        ("penalty", "Received: a loss of held. Regularize weights instead, or compute it in the loss."),
        ("spectral", "must leave weights to the optimizer to be split into stages. Received: held, which changes seq"),
        ("no loss", "must be compiled with a loss to be split into stages. Received: none."),
        (
            "whole batch",
            "Received: whole_batch, which gives one number for 3 rows. Have it return a number for each row",
        ),
        ("dice", "must have a loss that gives each row a number of its own, for a mean or a sum of them"),
        ("other rows", "Received: by_other_rows, which gives a row another number when it comes with others."),
        ("ignored", "which leaves rows or parts of them out, as ignore_class does."),
        ("own call", "must leave call to Keras to be split into stages. Received: OwnCall, with its own."),
        ("tied", "first/kernel, of first (stage 0) and again (stage 1)."),
        ("reading", "first/kernel, of another stage and what stage 1 computes."),
        ("no mean", "must have a loss that is a mean or a sum over rows to be trained in micro-batches."),
        ("whole numbers", "Received: a cut behind discretization, which gives int32."),
        ("sum", "must add up to the 3 layers of the model. Received: [2, 2], which is 4."),
        ("block", "which cuts behind narrow, though add also takes what comes from before it."),
        ("one layer", "must be at most 1, since the model can be cut nowhere. Received: 2."),
    ],
)
def test_what_cannot_be_split_is_refused_with_what_prevents_it(answers, name, words):
    """K31."""
    assert words in answers["refusals"][name]
    assert "\n" not in answers["refusals"][name]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("narrow", "expected axis -1 of input shape to have value 30, but received input with shape (2, 64)"),
        ("few classes", "labels of shape [3] (float32). Received: ValueError: Arguments `target` and `output` must"),
        ("codes", "must have the same rank (ndim). Received: target.shape=(2,), output.shape=(2, 10)"),
        ("broken", "The total size of the tensor must be unchanged. Received: input_shape=(8,), target_shape=(16,)"),
    ],
)
def test_shapes_that_do_not_meet_are_refused_in_a_line(answers, name, says):
    """K31: those of rows and the first stage, of the last stage and labels, of one stage and the next."""
    refused = answers["reports"][name]
    assert says in refused
    assert refused.isprintable()
    assert refused.startswith(
        ("the model of shaped.py must take rows of", "build_model of shaped.py must return a model")
    )
    assert ("(shaped.py, line " in refused) is (name == "broken")
    assert answers["reports"]["whole"][0].startswith("2 stages, 1f1b")


def test_layers_that_go_by_micro_batches_are_named_before_anything_starts(answers):
    assert (
        "norm, drop: by micro-batches, so that weights are others than without stages" in answers["reports"]["moving"]
    )
    assert not any("by micro-batches" in line for line in answers["reports"]["whole"])


def test_what_layers_add_to_the_loss_is_refused_before_anything_starts(answers):
    """K31: which shows only when they are called."""
    assert "Received: a loss of held." in answers["reports"]["penalised"]


def test_rows_with_weights_are_refused_by_the_chief_before_its_first_step(answers):
    """K31: only `build_dataset` has such, of which nobody else knows."""
    assert "must be given features and labels alone to be trained in stages. Received: rows of 3" in answers["weighted"]


def test_a_model_that_was_tried_is_what_it_was(answers):
    assert answers["tried"] == {"moving": ["norm", "drop"], "difference": 0}
