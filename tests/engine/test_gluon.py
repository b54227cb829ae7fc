"""MXNet in one process: the equivalence law, resuming, model files, the saved model."""

import json
import os
import subprocess

import numpy as np
import pytest
from gang import PYTHONS
from gluon_tasks import MISTAKEN_FILES, SINGLE
from teams import BATCH, GLUON_TEAMS, MOMENTUM
from test_laws import largest_difference

from training.checkpoints.tensors import read_tensors
from training.data.batches import order_epoch

pytestmark = pytest.mark.engine
#: Promised is 1e-4 relative; measured is 1e-6 at most.
TOLERANCE = 1e-5
SEVERAL = [team for team in GLUON_TEAMS if team != SINGLE]


def newest(gluon, team, name):
    """Return the tensors of the newest checkpoint of a training."""
    failures = gluon.chief.failures
    assert f"{team}/{name}" not in failures, failures[f"{team}/{name}"]
    return read_tensors(max(gluon.site.checkpoints(team, name).glob("step-*")) / "state.safetensors")


@pytest.mark.parametrize("name", ["momentum", "adam", "transformer", "user"])
@pytest.mark.parametrize("team", SEVERAL)
def test_weights_and_optimizer_are_those_of_one_device(gluon, team, name, law_table):
    """K32: gradients are scaled by the global batch, whatever it is cut into; shapes are known before any copy."""
    difference = largest_difference(newest(gluon, SINGLE, name), newest(gluon, team, name))
    law_table[str(GLUON_TEAMS[team]), name if name != "user" else "user file"] = difference
    assert difference < TOLERANCE


@pytest.mark.parametrize("name", ["momentum", "adam", "transformer", "user"])
@pytest.mark.parametrize("team", SEVERAL)
def test_metrics_are_those_of_one_device(gluon, team, name):
    """F1 of the user's file is no mean of what devices have of it."""
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


def test_resumed_dropout_drops_what_it_would_have(gluon):
    """K35: what a step draws depends on the seed, the step and the rank alone."""
    assert largest_difference(newest(gluon, SINGLE, "dropout"), newest(gluon, SINGLE, "dropout_resumed")) == 0


@pytest.mark.parametrize("name", ["rows", "rows_resumed"])
@pytest.mark.parametrize("team", GLUON_TEAMS)
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
    assert "model.params was {'optimizer'" in gluon.chief.failures[f"{SINGLE}/other_params"]["message"]


def test_it_learns(gluon):
    """Batch normalization keeps its averages, the same on all devices."""
    assert gluon.metrics("gluon-data_parallel-2/cnn")[-1]["val_accuracy"] > 0.5
    assert gluon.metrics(f"{SINGLE}/adam")[-1]["val_accuracy"] > 0.8
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


def test_saved_models_load_anywhere(gluon, tmp_path):
    """K38: as a symbol or with the code that goes along; with nothing of Ganger, from another folder."""
    code = (
        "import json, sys, mlflow, numpy as np\n"
        "sys.modules['training'] = None\n"
        "x = np.linspace(0, 1, 24, dtype=np.float32).reshape(2, 12)\n"
        "for path in sys.argv[1:]:\n"
        "    model = mlflow.pyfunc.load_model(path)\n"
        "    print(json.dumps([model.predict(x).tolist(), str(model.metadata.signature)]))\n"
    )
    names = ["user", "plain", "symbol"]
    paths = [str(gluon.site.model(SINGLE, name)) for name in names]
    env = {**os.environ, "PYTHONPATH": ""}
    answer = subprocess.run(
        [str(PYTHONS["mxnet"]), "-c", code, *paths], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
    )
    assert answer.returncode == 0, answer.stderr
    for line in answer.stdout.splitlines()[-3:]:
        outputs, signature = json.loads(line)
        assert np.shape(outputs) == (2, 2)
        assert "Tensor('float32', (-1, 12))" in signature
    said = gluon.chief.text
    assert "the model will be saved as its parameters: it loads with the code of gluon/plain.py" in said
