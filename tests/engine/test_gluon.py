"""MXNet in one process: the equivalence law, resuming, model files, the saved model."""

import json
import os
import subprocess

import numpy as np
import pytest
from gang import PYTHONS
from gluon_tasks import MISTAKEN_FILES, SINGLE
from teams import BATCH, GLUON_TEAMS, MOMENTUM
from test_laws import RELATIVE_TOLERANCE, largest_difference, largest_relative_difference

from training.checkpoints.tensors import read_tensors
from training.data.batches import order_epoch

pytestmark = pytest.mark.engine
#: Promised is 1e-4 relative; measured is 1e-6 at most.
TOLERANCE = 1e-5
REPLICATED = [team for team in GLUON_TEAMS if GLUON_TEAMS[team].strategy != "model_parallel"]
SEVERAL = [team for team in GLUON_TEAMS if team != SINGLE]


def newest(gluon, team, name):
    """Return the tensors of the newest checkpoint of a training."""
    failures = gluon.chief.failures
    assert f"{team}/{name}" not in failures, failures[f"{team}/{name}"]
    return read_tensors(max(gluon.site.checkpoints(team, name).glob("step-*")) / "state.safetensors")


@pytest.mark.parametrize("name", ["momentum", "adam", "transformer", "user"])
@pytest.mark.parametrize("team", SEVERAL)
def test_weights_and_optimizer_are_those_of_one_device(gluon, team, name, law_table):
    """K32: gradients are scaled by the global batch, whatever it is cut into; shapes are known before any copy.

    K21: of 1439 rows, a prime, the same 59 are left out.
    """
    alone, together = newest(gluon, SINGLE, name), newest(gluon, team, name)
    difference = largest_relative_difference(together, alone)
    law_table[str(GLUON_TEAMS[team]), name if name != "user" else "user file"] = difference
    assert largest_difference(alone, together) < TOLERANCE
    assert difference < RELATIVE_TOLERANCE


@pytest.mark.parametrize("name", ["momentum", "adam", "transformer", "user"])
@pytest.mark.parametrize("team", SEVERAL)
def test_metrics_are_those_of_one_device(gluon, team, name):
    """F1 of the user's file is no mean of what devices have of it. K29: the rate of each step is the schedule's."""
    alone, together = gluon.metrics(f"{SINGLE}/{name}"), gluon.metrics(f"{team}/{name}")
    for one, other in zip(alone, together, strict=True):
        assert other == pytest.approx(one, rel=1e-5)
    steps = {event.step: event.metrics for event in gluon.chief.of(f"{team}/{name}", "step")}
    common = [event for event in gluon.chief.of(f"{SINGLE}/{name}", "step") if event.step in steps]
    assert common
    for event in common:
        assert steps[event.step] == pytest.approx(event.metrics, rel=1e-5)


@pytest.mark.parametrize("team", GLUON_TEAMS)
def test_resumed_in_mid_epoch_equals_undisturbed(gluon, team):
    """K35: weights, momenta, counts and the metrics of the epoch that was begun, under any strategy."""
    assert largest_difference(newest(gluon, SINGLE, "momentum"), newest(gluon, team, "resumed")) < TOLERANCE
    assert gluon.metrics(f"{team}/resumed")[-1] == pytest.approx(gluon.metrics(f"{SINGLE}/momentum")[-1], rel=1e-5)
    steps = [event.step for event in gluon.chief.of(f"{team}/resumed", "step")]
    assert 30 < steps[0] <= steps[-1] == 46


def test_blocks_are_placed_as_the_map_says(gluon):
    """K33, K31: in 7 micro-batches, which 60 rows do not divide into, to the weights of one device."""
    assert "placement: output on device 0; hidden on device 1; 7 micro-batches a step" in gluon.chief.text
    difference = largest_difference(newest(gluon, SINGLE, "adam"), newest(gluon, "gluon-model_parallel-2", "mapped"))
    assert difference < TOLERANCE


def test_costs_are_balanced_without_a_map(gluon):
    assert "placement: hidden.0 on device 0; hidden.1, output on device 1; 2 micro-batches a step" in gluon.chief.text
    assert "placement: embedding, layers.0 on device 0; layers.1 on device 1; normalization, output on device 2" in (
        gluon.chief.text
    )


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("unplaced", "train.placement: must place every block that has parameters. Received: none for hidden.1."),
        ("inside", "train.placement: must not place a block inside another one. Received: hidden.1 and hidden."),
        ("unknown_block", "train.placement: must name blocks of the model. Received: hiden; blocks: hidden, hidden.0,"),
        (
            "one_block",
            "cluster.devices: must be at most the blocks that can be placed. Received: 2 devices; blocks: none.",
        ),
        ("one_graph", "train.strategy: must not be `model_parallel` for a gluon.SymbolBlock, which is one graph and"),
        ("tied", "train.placement: must place blocks that share parameters on one device. Received: 0 and 1."),
    ],
)
def test_a_map_that_does_not_do_is_refused(gluon, name, says):
    """K33: before any training."""
    failure = gluon.chief.failures[f"gluon-model_parallel-2/{name}"]
    assert failure["error"] == "SpecError"
    assert failure["message"].startswith(says)
    assert gluon.metrics(f"gluon-model_parallel-2/{name}") == []


@pytest.mark.parametrize("team", GLUON_TEAMS)
def test_frozen_blocks_keep_the_weights_that_were_loaded(gluon, team):
    """All but the last are frozen; tuning obeys the law."""
    source, tuned = newest(gluon, SINGLE, "momentum"), newest(gluon, team, "tuned")
    for name in ("hidden.0.weight", "hidden.0.bias", "hidden.1.weight", "hidden.1.bias"):
        np.testing.assert_array_equal(tuned[f"param.{name}"], source[f"param.{name}"])
    assert not np.array_equal(tuned["param.output.weight"], source["param.output.weight"])
    assert largest_difference(newest(gluon, SINGLE, "tuned"), tuned) < TOLERANCE
    # It went on from there: its first loss is that of a trained model.
    first = gluon.chief.of(f"{team}/tuned", "step")[0].metrics["loss"]
    assert first < gluon.chief.of(f"{SINGLE}/momentum", "step")[0].metrics["loss"] / 2


def test_frozen_batch_normalization_keeps_its_averages(gluon):
    source, tuned = (newest(gluon, "gluon-data_parallel-2", name) for name in ("cnn", "tuned_cnn"))
    for name in (name for name in source if name.startswith("param.")):
        assert np.array_equal(tuned[name], source[name]) is name.startswith("param.features."), name


def test_what_was_loaded_and_frozen_is_said(gluon):
    text = gluon.chief.text
    names = "hidden.0.weight, hidden.0.bias, hidden.1.weight, hidden.1.bias, output.weight, output.bias"
    assert f"6 loaded ({names})" in text
    assert "frozen: hidden; 330 of 6570 parameters are trained" in text
    assert "2 of another shape, as built (output.weight, output.bias)" in text
    assert gluon.chief.result(f"{SINGLE}/other_head")["steps"] == 23


@pytest.mark.parametrize(
    ("name", "says"),
    [
        (
            "other_model",
            "model.initialize_from: must have at least one parameter with the name and shape of one of the",
        ),
        ("freeze_unknown", "model.freeze: must match the name of a block. Received: hiden; blocks: hidden, hidden.0,"),
        ("freeze_all", "model.freeze: must leave something to be trained. Received: hidden, output."),
    ],
)
def test_what_cannot_be_tuned_is_refused(gluon, name, says):
    failure = gluon.chief.failures[f"{SINGLE}/{name}"]
    assert failure["error"] == "SpecError"
    assert failure["message"].startswith(says)


def test_resumed_dropout_drops_what_it_would_have(gluon):
    """K35: what a step draws depends on the seed, the step and the rank alone."""
    assert largest_difference(newest(gluon, SINGLE, "dropout"), newest(gluon, SINGLE, "dropout_resumed")) == 0


@pytest.mark.parametrize("name", ["rows", "rows_resumed"])
@pytest.mark.parametrize("team", REPLICATED)
def test_every_row_is_taken_once(gluon, team, name):
    """K21, K24: the metrics of an epoch are those of exactly the rows of its steps, also when it was cut off."""
    if name == "rows_resumed":
        team = SINGLE
    labels = np.load(gluon.site.datasets["numbered"] / "train_y.npy")
    rows = len(labels) // BATCH * BATCH
    told = gluon.metrics(f"{team}/{name}")
    first = 2 - len(told)
    assert told
    for epoch, metrics in enumerate(told, start=first):
        seen = labels[order_epoch(7, epoch, len(labels))[:rows]].astype(np.float64)
        assert metrics["label"] == pytest.approx(seen.mean(), rel=1e-6)
        assert metrics["squared_label"] == pytest.approx((seen**2).mean(), rel=1e-6)


@pytest.mark.parametrize("team", GLUON_TEAMS)
def test_infinite_loss_stops_at_that_step(gluon, team):
    """K30: the last good checkpoint is kept and no model is saved."""
    failure = gluon.chief.failures[f"{team}/outlier"]
    assert failure["error"] == "DivergedError"
    assert f"Received: inf at step {failure['step']} (epoch 1) on replica" in failure["message"]
    kept = [event.step for event in gluon.chief.of(f"{team}/outlier", "checkpoint")]
    assert kept == list(range(2, failure["step"], 2))
    assert not gluon.site.model(team, "outlier").exists()


def test_infinite_loss_in_validation_stops(gluon):
    """K30."""
    assert "val_loss must be a finite number" in gluon.chief.failures[f"{SINGLE}/held_out_outlier"]["message"]


def test_checkpoint_of_another_training_is_refused(gluon):
    """K36."""
    assert (
        "model.params was {'hidden': [64, 32], 'optimizer'" in gluon.chief.failures[f"{SINGLE}/other_params"]["message"]
    )


def test_it_learns(gluon):
    """Batch normalization keeps its averages, the same on all devices."""
    assert gluon.metrics("gluon-data_parallel-2/cnn")[-1]["val_accuracy"] > 0.5
    assert gluon.metrics(f"{SINGLE}/momentum")[-1]["val_accuracy"] > 0.8
    averages = [
        array for name, array in newest(gluon, "gluon-data_parallel-2", "cnn").items() if "running_mean" in name
    ]
    assert len(averages) == 2
    assert all(np.abs(array).max() > 0 for array in averages)


def test_learning_rate_is_scaled_and_warmed_up(gluon):
    """K29: linear from the model's own rate to twice it in ten steps; under a schedule, the rate of each step."""
    base = MOMENTUM["learning_rate"]
    for event in gluon.chief.of("gluon-data_parallel-2/linear", "step"):
        assert event.metrics["learning_rate"] == pytest.approx(base * (1 + min(event.step / 10, 1)), rel=1e-5)
    rates = [event.metrics["learning_rate"] for event in gluon.chief.of(f"{SINGLE}/user", "step")]
    assert rates[0] == pytest.approx(0.2)
    assert rates == sorted(rates, reverse=True)
    assert len(set(rates)) > 1


def test_defaults_go_by_the_labels(gluon):
    """Half the squared difference for numbers, cross-entropy for classes; Adam with a rate of 0.001."""
    numbers, classes = (gluon.metrics(f"{SINGLE}/{name}")[0] for name in ("numbers", "classes"))
    assert numbers.keys() == {"loss", "mae", "mse", "val_loss", "val_mae", "val_mse"}
    assert numbers["val_loss"] == pytest.approx(numbers["val_mse"] / 2, rel=1e-5)
    assert numbers["val_mae"] ** 2 < numbers["val_mse"]
    assert classes.keys() == {"loss", "accuracy", "val_loss", "val_accuracy"}
    for name in ("numbers", "classes"):
        assert gluon.chief.of(f"{SINGLE}/{name}", "step")[-1].metrics["learning_rate"] == pytest.approx(0.001)


def test_what_was_chosen_is_said(gluon):
    """Whether it is the file's: a default is not to go unseen."""
    text = gluon.chief.text
    assert (
        "loss: L2Loss (the default, there is no build_loss), optimizer: Adam (the default, there is no build_trainer), "
        "metrics: mae, mse (the default, there is no build_metrics)" in text
    )
    assert "loss: lambda (of build_loss), optimizer: SGD (of build_trainer), metrics: f1, accuracy (of build_" in text


def test_metric_whose_reset_goes_by_its_settings(gluon):
    """Of two classes; what the metric counts in is found without its settings being lost."""
    (metrics,) = gluon.metrics(f"{SINGLE}/plain")
    wrong = 1 - metrics["val_accuracy"]
    assert 0 < wrong < 0.5
    assert 0 < metrics["val_overlap"] < metrics["val_accuracy"]
    assert 0 < metrics["val_pcc"] < 1


def test_hybridized_or_not_it_trains_the_same(gluon):
    assert largest_difference(newest(gluon, SINGLE, "adam"), newest(gluon, SINGLE, "debugged")) < TOLERANCE


@pytest.mark.parametrize("name", MISTAKEN_FILES)
def test_model_file_that_does_not_do(gluon, name):
    """K17, K32, K38: said before any training."""
    failure = gluon.chief.failures[f"{SINGLE}/{name}"]
    assert failure["error"] == ("WorkerError" if name == "wrong_shape" else "SpecError")
    file = gluon.site.root / "gluon_files" / f"{name}.py"
    assert MISTAKEN_FILES[name][1].format(file=file) in failure["message"]
    assert gluon.metrics(f"{SINGLE}/{name}") == []


@pytest.mark.parametrize("team", REPLICATED)
def test_sparse_gradients_train_as_dense_ones_do(gluon, team):
    assert largest_difference(newest(gluon, SINGLE, "dense"), newest(gluon, team, "sparse")) < TOLERANCE


@pytest.mark.parametrize("team", [team for team in GLUON_TEAMS if team not in REPLICATED])
def test_sparse_gradients_are_refused_where_blocks_are_apart(gluon, team):
    """MXNet cannot add them up over micro-batches."""
    assert gluon.chief.failures[f"{team}/sparse"]["message"] == (
        "train.strategy: must be `single` or `data_parallel` for sparse gradients. "
        "Received: model_parallel and 0.weight. Leave out sparse_grad."
    )


def test_device_that_the_file_chose_is_given_up(gluon):
    """What it set the weights to is kept: they are all alike, and so are both outputs at first."""
    assert gluon.chief.of(f"{SINGLE}/elsewhere", "step")[0].metrics["loss"] == pytest.approx(np.log(2), rel=1e-4)


def test_parameter_that_no_function_takes_is_refused(gluon):
    assert "Received: learnin_rate" in gluon.chief.failures[f"{SINGLE}/unknown_parameter"]["message"]


def test_evaluation_equals_the_validation_of_the_last_epoch(gluon):
    """The saved model, loaded, with the loss and the metrics of the file."""
    told = gluon.chief.of(f"{SINGLE}/reached", "result")[0].values
    last = gluon.metrics(f"{SINGLE}/user")[-1]
    assert {f"val_{name}": value for name, value in told["metrics"].items()} == pytest.approx(
        {name: value for name, value in last.items() if name.startswith("val_")}, rel=1e-6
    )
    assert "f1 must be at least 0.9999" in gluon.chief.failures[f"{SINGLE}/not_reached"]["message"]


@pytest.mark.parametrize("team", GLUON_TEAMS)
def test_devices_are_those_of_the_plan(gluon, team):
    """K12: as many contexts, each with a queue of its own."""
    (ready,) = gluon.chief.of(f"{team}/adam", "ready")
    devices = GLUON_TEAMS[team].devices
    assert ready.devices == tuple(f"CPU:{index}" for index in range(devices))
    assert ready.replicas == (devices if team in REPLICATED else 1)


def test_what_a_model_file_logs_makes_no_run_of_its_own(gluon):
    """K39."""
    assert "Ignored: http://127.0.0.1:9/nobody-listens-here" in gluon.chief.text
    assert "what the code logs to MLflow is not kept" in gluon.chief.text
    assert list((gluon.folder / "tmp" / "mlflow-of-rank-0").glob("0/*/params/own"))


@pytest.fixture(scope="module")
def loaded(gluon, tmp_path_factory):
    """Saved models by label, as they are loaded with nothing of Ganger, from another folder: outputs and signature."""
    code = (
        "import json, sys, mlflow, numpy as np\n"
        "sys.modules['training'] = None\n"
        "for path in sys.argv[1:]:\n"
        "    model = mlflow.pyfunc.load_model(path)\n"
        "    columns = model.metadata.signature.inputs.inputs[0].shape[1]\n"
        "    x = np.linspace(0, 1, 2 * columns, dtype=np.float32).reshape(2, columns)\n"
        "    print('LOADED', json.dumps([model.predict(x).tolist(), str(model.metadata.signature)]))\n"
    )
    labels = [f"{SINGLE}/{name}" for name in ("user", "plain", "symbol")]
    labels += [f"{team}/{name}" for team in GLUON_TEAMS for name in ("adam", "transformer")]
    labels += ["gluon-data_parallel-2/cnn"]
    answer = subprocess.run(
        [str(PYTHONS["mxnet"]), "-c", code, *(str(gluon.site.model(*label.split("/"))) for label in labels)],
        cwd=tmp_path_factory.mktemp("elsewhere"),
        env={**os.environ, "PYTHONPATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    lines = [line.removeprefix("LOADED ") for line in answer.stdout.splitlines() if line.startswith("LOADED ")]
    return dict(zip(labels, map(json.loads, lines), strict=True))


def test_saved_models_load_anywhere(gluon, loaded):
    """K38: as a symbol or with the code that goes along, with a signature."""
    for name in ("user", "plain", "symbol"):
        outputs, signature = loaded[f"{SINGLE}/{name}"]
        assert np.shape(outputs) == (2, 2)
        assert "Tensor('float32', (-1, 12))" in signature
    assert np.shape(loaded["gluon-data_parallel-2/cnn"][0]) == (2, 10)
    said = gluon.chief.text
    assert "the model will be saved as its parameters: it loads with the code of gluon/plain.py" in said
    assert "Add type hints" not in said  # MLflow's advice to the class that loads it, which nobody can follow


@pytest.mark.parametrize("name", ["adam", "transformer"])
@pytest.mark.parametrize("team", GLUON_TEAMS)
def test_saved_model_predicts_what_that_of_one_device_does(loaded, team, name):
    """K38: wherever its blocks and its trainers' states were."""
    outputs, signature = loaded[f"{team}/{name}"]
    assert "Tensor('float32', (-1, 64))" in signature
    np.testing.assert_allclose(outputs, loaded[f"{SINGLE}/{name}"][0], rtol=1e-4, atol=1e-5)
