"""Scripts as people have them, each by two real ranks: they run as they are, and make one MLflow run."""

import json
import re
import signal
import subprocess
from pathlib import Path

import pytest
from gang import PYTHON, run_gang
from test_ganger_run import ganger, home, list_marked  # noqa: F401 - `home` is a fixture

from training import settings
from training.spec.pipeline import PipelineSpec
from training.tracking.mlflow_client import connect

pytestmark = pytest.mark.engine
SCRIPTS = Path(__file__).parent / "user_files" / "scripts"
SHIPPED = settings.REPOSITORY / "dags" / "pipelines" / "digits_script.yaml"


def run_script(home, tmp_path, train, *arguments, **blocks):  # noqa: F811
    spec = {"name": "own", "data": {"source": "digits"}, "train": train, "cluster": {"workers": 2}, **blocks}
    (tmp_path / "own.yaml").write_text(json.dumps({**spec, "experiment": tmp_path.name}))
    return run_file(home, tmp_path / "own.yaml", *arguments)


def run_file(home, path, *arguments):  # noqa: F811
    answer = ganger(home, "run", path, "--json", *arguments)
    assert answer.returncode == 0, answer.stderr[-6000:]
    outcome = json.loads(answer.stdout)
    assert list_marked(outcome["run_id"]) == []
    merged = home / "runs" / outcome["run_id"] / "jobs" / "train" / "merged.log"
    return outcome, merged.read_text()


def said(merged, word):
    """Return what each of the two ranks printed behind `word`."""
    found = dict(re.findall(rf"^\[rank (\d)\] {word} (.*)$", merged, re.MULTILINE))
    assert sorted(found) == ["0", "1"], merged[-3000:]
    return [found["0"], found["1"]]


def only_run(home, experiment, outcome):  # noqa: F811
    """Return the only MLflow run that the training made."""
    client = connect(f"sqlite:///{home / 'mlflow.db'}")
    names = {found.name: found.experiment_id for found in client.search_experiments()}
    (run,) = client.search_runs([names[experiment]])
    assert run.info.run_id == outcome["mlflow_run_id"]
    assert not [name for name in names if "script" in name]
    return client, run


def history(client, run, name):
    return [(point.step, point.value) for point in client.get_metric_history(run.info.run_id, name)]


def test_keras_fit_by_several_workers_is_evaluated_and_registered(home, tmp_path):  # noqa: F811
    """K39: both ranks start a run. The shipped script, with `fit` of Keras 3 as it is."""
    text = SHIPPED.read_text().replace("experiment: digits", f"experiment: {tmp_path.name}")
    (tmp_path / "own.yaml").write_text(f"{text}register: {{model: by_script}}\n")
    (tmp_path / "scripts").symlink_to(SHIPPED.parent / "scripts")
    outcome, merged = run_file(home, tmp_path / "own.yaml")

    norms = said(merged, "norm of the weights")
    assert norms[0] == norms[1]
    assert outcome["evaluation"]["accuracy"] >= 0.9
    assert outcome["registered"]["version"] == "1"
    client, run = only_run(home, tmp_path.name, outcome)
    assert run.info.status == "FINISHED"
    assert run.data.params["train.script"] == "scripts/digits_keras.py"
    assert run.data.params["epochs"] == "4"
    assert [step for step, _ in history(client, run, "train_accuracy")] == [1, 2, 3, 4]


def test_horovod_with_keras_callbacks_makes_one_mlflow_run(home, tmp_path):  # noqa: F811
    """K39: each rank names another server and experiment, and starts two runs."""
    train = {"engine": "horovod", "script": str(SCRIPTS / "horovod_fit.py"), "args": ["5"]}
    outcome, merged = run_script(home, tmp_path, train, evaluate={"require": {"accuracy": 0.9}})

    for word in ("norm", "accuracies"):
        first, second = said(merged, word)
        assert first == second
    rates = [float(rate) for rate in re.findall(r"[\d.]+", said(merged, "rates")[0])]
    assert rates == pytest.approx([0.0045, 0.006, 0.006, 0.006, 0.006], rel=1e-3)
    client, run = only_run(home, tmp_path.name, outcome)
    assert run.info.status == "FINISHED"
    assert history(client, run, "of_rank") == [(0, 0.0)]
    assert len(history(client, run, "train_accuracy")) == 5
    assert "mlflow.set_experiment: the run stays in the pipeline's experiment" in merged
    assert "Ignored: http://127.0.0.1:9/nobody-listens-here" in merged


def test_a_loop_with_horovods_gradient_tape(home, tmp_path):  # noqa: F811
    train = {"engine": "horovod", "script": str(SCRIPTS / "horovod_loop.py")}
    outcome, merged = run_script(home, tmp_path, train)

    norms = said(merged, "norm")
    assert norms[0] == norms[1]
    assert float(said(merged, "loss")[0]) < 0.8
    assert outcome["model_path"] is None
    assert outcome["metrics"] == outcome["evaluation"] == {}


def test_a_loop_of_gluon_with_the_key_value_store(home, tmp_path):  # noqa: F811
    """K39: all ranks log. Without the repair of MXNet, a script that was done would die of SIGABRT."""
    train = {"engine": "mxnet", "strategy": "dist_sync", "restarts": 0, "script": str(SCRIPTS / "gluon_store.py")}
    outcome, merged = run_script(home, tmp_path, train)

    assert said(merged, "workers") == ["2", "2"]
    norms = said(merged, "norm")
    assert norms[0] == norms[1]
    assert Path(outcome["model_path"], "MLmodel").exists()
    client, run = only_run(home, tmp_path.name, outcome)
    assert run.info.status == "FINISHED"
    losses = history(client, run, "loss")
    assert [step for step, _ in losses] == [1, 2, 3, 4]
    assert losses[-1][1] < 1.0


def test_a_loop_of_gluon_with_horovod(home, tmp_path):  # noqa: F811
    """K39. The imports of the script tell that it is one of MXNet."""
    train = {"engine": "horovod", "restarts": 0, "script": str(SCRIPTS / "gluon_horovod.py")}
    outcome, merged = run_script(home, tmp_path, train)

    norms = said(merged, "norm")
    assert norms[0] == norms[1]
    client, run = only_run(home, tmp_path.name, outcome)
    assert history(client, run, "of_rank") == [(0, 0.0)]
    assert history(client, run, "loss")[-1][1] < 1.0
    assert "Ignored: http://127.0.0.1:9/nobody-listens-here" in merged


def test_a_loop_of_ones_own_by_several_workers(home, tmp_path):  # noqa: F811
    """K03: that all replicas are there is for the script to say."""
    strategy = {"engine": "tensorflow", "strategy": "multi_worker_mirrored"}
    outcome, merged = run_script(home, tmp_path, {**strategy, "script": str(SCRIPTS / "custom_loop.py")})

    assert said(merged, "replicas") == ["2", "2"]
    for word in ("norm", "loss"):
        first, second = said(merged, word)
        assert first == second
    assert float(said(merged, "loss")[0]) < 0.6
    client, run = only_run(home, tmp_path.name, outcome)
    assert [step for step, _ in history(client, run, "loss")] == [20, 40, 60, 80]


def test_a_loop_with_a_coordinator_and_parameter_servers(home, tmp_path):  # noqa: F811
    """The chief runs the script; what it would have the other members do, they do already."""
    strategy = {"engine": "tensorflow", "strategy": "parameter_server"}
    outcome, merged = run_script(home, tmp_path, {**strategy, "script": str(SCRIPTS / "coordinator_loop.py")})

    assert dict(re.findall(r"^\[rank (\d)\] loss (.*)$", merged, re.MULTILINE)).keys() == {"0"}
    client, run = only_run(home, tmp_path.name, outcome)
    losses = history(client, run, "loss")
    assert [step for step, _ in losses] == [1, 2, 3, 4]
    assert losses[-1][1] < 0.6


def test_the_repairs_are_still_needed():
    """One that upstream has made unnecessary is to be removed (the two of Keras' `fit`: `test_keras_models.py`)."""
    command = [PYTHON, Path(__file__).parent / "unrepaired.py"]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)

    assert dict(re.findall(r"^UNREPAIRED (\w+) (.*)$", answer.stdout, re.MULTILINE)) == {
        "preemption_notice": "SIGTERM is caught",
        "optimizer": "gradients stay where they are",
        "broadcast_callback": "AttributeError",
        "average_callback": "AttributeError",
        "warmup_callback": "AttributeError",
        "broadcast_variables": "AttributeError",
        "gradient_tape": "AttributeError",
    }


@pytest.mark.parametrize(("arguments", "exit_code"), [([], -signal.SIGABRT), (["repaired"], 0)])
def test_the_repair_of_the_store_is_still_needed(tmp_path, arguments, exit_code):
    """A script that was done dies of SIGABRT where MXNet's store is freed late; not with the repair."""
    mapping = {
        "name": "own",
        "train": {"engine": "mxnet", "strategy": "dist_sync", "script": "unrepaired_store.py"},
        "cluster": {"workers": 1},
    }
    command = [Path(__file__).parent / "unrepaired_store.py", *arguments]

    (rank,) = run_gang(tmp_path / "gang", command, {"engine": "mxnet"}, PipelineSpec.model_validate(mapping))

    assert "done" in rank.text
    assert rank.exit_code == exit_code, rank.text
