"""What must be so under every strategy: the same model files train, and known failures end in the same way."""

import re

import pytest
from tasks import OUTLIER_STEP
from teams import MOMENTUM, STRATEGIES, TEAMS

from training.checkpoints.tensors import read_tensors

pytestmark = pytest.mark.engine


@pytest.fixture(params=STRATEGIES)
def strategy(request):
    return request.param


@pytest.fixture
def gang(gang_by, strategy):
    return gang_by(strategy)


def find_rank(gang):
    """Return how the message calls the replica that was given the outlier: all of one process, the second of two."""
    whose = "rank" if len(gang.ranks) > 1 else "replica"
    return rf"{whose} {min(gang.replicas, 2) - 1}"


@pytest.mark.parametrize("name", ["momentum", "user"])
def test_a_shipped_file_and_a_users_file_train(site, one, gang, strategy, name):
    """All that changes is `train.engine`, `train.strategy` and the number of workers."""
    assert gang.chief.result(name)["steps"] == one.chief.result(name)["steps"]
    assert (site.model(gang.team, name) / "MLmodel").exists()
    alone, together = (site.payload(team, name, "user_net.py")["spec"] for team in (1, gang.team))
    own = {"engine", "strategy", "compression", "reduction", "pipeline"}
    assert {key for key in together["train"] if together["train"][key] != alone["train"].get(key)} <= own
    assert {key for key in together if together[key] != alone[key]} <= {"train", "cluster"}


def test_evaluation_is_exactly_the_validation_of_the_last_epoch(later, gang, strategy):
    """AUC and precision of 81 rows, which two ranks cannot share: one process has the same, to the last digit."""
    told = later.chief.result(f"evaluate_{strategy}")
    last = gang.metrics("user")[-1]

    assert told["rows"] == 81
    assert {"auc", "precision", "loss"} <= told["metrics"].keys()
    assert {f"val_{name}": value for name, value in told["metrics"].items()} == {
        name: value for name, value in last.items() if name.startswith("val_")
    }


def test_all_replicas_are_there_though_a_module_uses_tensorflow_at_import(gang):
    """K03, K12: threads and devices were set before; `user_net.py` makes a tensor and lists devices."""
    for rank in gang.ranks:
        assert rank.of("", "ready")[0].replicas == gang.replicas
        assert rank.told["THREADS"] == [{"intra": 1, "given": 1}]
    assert gang.chief.result("user")
    devices = TEAMS[gang.team].devices
    said = f"no GPU here: the replicas share the CPU as {devices} logical devices"
    assert (said in gang.chief.text) == (devices > 1)


def test_a_module_that_sets_devices_is_named(gang):
    """K12: they are set already."""
    for rank in gang.ranks:
        failure = rank.failures["sets_devices"]
        assert failure["error"] == "SpecError"
        assert "Received: sets_devices.py, which raised RuntimeError: Visible devices cannot be" in failure["message"]
        assert failure["message"].endswith("sets_devices.py).")
        assert "(line 2 of " in failure["message"]


def test_a_model_of_the_legacy_keras_is_refused(gang):
    """K09."""
    for rank in gang.ranks:
        assert "Received: a model of tf_keras, the legacy Keras 2. Import keras" in rank.failures["legacy"]["message"]


def test_a_late_rank_is_waited_for(gang):
    """K20: rank 1 leaves the training 1.5 s after the others; then the chief saves, and the next training begins."""
    assert gang.chief.result("early")
    for rank in gang.ranks:
        assert rank.exit_code == 0
        assert ("LATE" in rank.text) is (rank is not gang.chief)


def test_learning_rate_is_what_was_asked(gang):
    """K29: the model's own by default; `linear` is the model's times the replicas, reached in ten steps."""
    base = MOMENTUM["learning_rate"]
    own, scaled = (
        [event.metrics["learning_rate"] for event in gang.chief.of(name, "step")] for name in ("momentum", "linear")
    )
    assert own == pytest.approx([base] * len(own))
    assert scaled == sorted(scaled)
    assert scaled[0] < scaled[-1] == pytest.approx(base * gang.replicas)


def test_infinite_loss_of_one_replica_stops_all_at_that_step(gang):
    """K30: with step and rank; the last good checkpoint is kept and no model is saved.

    Under parameter servers another share of the step may have been applied after the one with the outlier.
    """
    for rank in gang.ranks:
        failure = rank.failures["outlier"]
        assert (failure["error"], failure["step"]) == ("DivergedError", OUTLIER_STEP)
        words = rf"Received: \S+ at step {OUTLIER_STEP} \(epoch 1\) on (replicas 0, 1|{find_rank(gang)})\."
        assert re.search(words, failure["message"]), failure["message"]
    assert [event.step for event in gang.chief.of("outlier", "checkpoint")] == [2, 4]
    assert not gang.site.model(gang.team, "outlier").exists()


def test_infinite_loss_in_validation_stops_all(gang):
    """K30."""
    for rank in gang.ranks:
        assert "val_loss must be a finite number. Received: inf" in rank.failures["held_out_outlier"]["message"]
    assert not gang.site.model(gang.team, "held_out_outlier").exists()


def test_only_the_chief_writes_checkpoints_and_each_is_whole(gang):
    """K34."""
    told = [event.step for event in gang.chief.of("momentum", "checkpoint")]
    kept = sorted(gang.site.checkpoints(gang.team, "momentum").iterdir())
    assert [int(folder.name.removeprefix("step-")) for folder in kept] == told
    assert told[-1] == 46
    for folder in kept:
        assert read_tensors(folder / "state.safetensors").keys() >= {"model.0000", "optimizer.0000"}
    for rank in gang.ranks[1:]:
        assert rank.of("momentum", "checkpoint") == []


def test_a_checkpoint_of_another_training_is_refused_alike(gang):
    """K36."""
    for rank in gang.ranks:
        failure = rank.failures["other_params"]
        assert failure["error"] == "SpecError"
        assert "model.params was {'optimizer': 'momentum', 'learning_rate': 0.05} and is now" in failure["message"]


def test_what_a_model_file_logs_makes_no_run_of_its_own(gang):
    """K39: on each rank it names a server and an experiment, has autologging on and starts a run."""
    for number, rank in enumerate(gang.ranks):
        assert "Ignored: http://127.0.0.1:9/nobody-listens-here" in rank.text
        assert "mlflow.tensorflow.autolog: nothing to do" in rank.text
        (logged,) = (gang.folder / "tmp" / f"mlflow-of-rank-{number}").glob("0/*/metrics/own_loss")
        assert len(logged.read_text().splitlines()) == len(gang.chief.of("early", "epoch"))
        assert ("is not kept" in rank.text) is (rank is gang.chief)
