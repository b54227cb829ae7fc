"""The whole pipeline from the command line: real ranks, real MLflow, no Airflow."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from training import settings
from training.tracking.mlflow_client import connect

pytestmark = pytest.mark.engine
DIGITS = settings.REPOSITORY / "dags" / "pipelines" / "digits.yaml"
TIMEOUT_S = 240


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A home folder of its own, so that runs, data and the MLflow store of the developer stay untouched."""
    return tmp_path_factory.mktemp("home")


def ganger(home, *arguments, cwd=None):
    env = {**os.environ, settings.HOME: str(home)}
    env.pop(settings.TRACKING_URI, None)
    command = [str(Path(sys.executable).parent / "ganger"), *map(str, arguments)]
    return subprocess.run(command, env=env, cwd=cwd, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)


@contextlib.contextmanager
def start_ganger(home, *arguments, log):
    """Start the command, which is ended with the context; its standard error goes to `log`."""
    env = {**os.environ, settings.HOME: str(home)}
    env.pop(settings.TRACKING_URI, None)
    command = [str(Path(sys.executable).parent / "ganger"), *map(str, arguments)]
    # Tests in a shell's background job have SIGINT ignored, and so would the command.
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    with log.open("w") as stream:
        process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=stream, text=True)
    signal.signal(signal.SIGINT, handler)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(TIMEOUT_S)


def run_digits(home, workers):
    answer = ganger(
        home, "run", DIGITS, "--json", "--set", f"cluster.workers={workers}", "--set", "train.epochs=3",
        "--set", "evaluate.require={}",
    )  # fmt: skip
    assert answer.returncode == 0, answer.stderr
    return json.loads(answer.stdout)


def list_marked(run_id):
    """Return the processes that bear the mark of a run."""
    found = []
    for process in psutil.process_iter():
        try:
            mark = process.environ().get(settings.MARK, "")
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
        if mark.startswith(f"{run_id}/"):
            found.append(process)
    return found


@pytest.fixture(scope="module")
def outcomes(home):
    return {workers: run_digits(home, workers) for workers in (1, 2)}


def test_the_equivalence_law_holds_from_the_command_line(outcomes):
    """Promise 2: 1 and 2 workers, same global batch, same weights to rounding."""
    one, two = outcomes[1], outcomes[2]

    assert one["steps"] == two["steps"] > 0
    assert two["weights_norm"] == pytest.approx(one["weights_norm"], rel=1e-5)
    for kind in ("metrics", "evaluation"):
        assert two[kind] == pytest.approx(one[kind], rel=1e-3)
    assert one["evaluation"]["loss"] == pytest.approx(one["metrics"]["val_loss"], rel=1e-3)


def test_the_json_object_says_what_a_script_needs(outcomes):
    for outcome in outcomes.values():
        assert outcome["state"] == "succeeded"
        assert len(outcome["weights_sha256"]) == 64
        assert Path(outcome["model_path"], "MLmodel").exists()
        assert outcome["mlflow_run_id"]
        assert outcome["registered"]["model"] == "digits"


def test_nothing_is_left_running(outcomes):
    """K16."""
    assert [process for outcome in outcomes.values() for process in list_marked(outcome["run_id"])] == []


def test_runs_and_logs_find_the_run(home, outcomes):
    run_id = outcomes[2]["run_id"]

    listed = ganger(home, "runs")
    logged = ganger(home, "logs", run_id)
    of_rank = ganger(home, "logs", run_id, "--rank", 1)

    assert run_id in listed.stdout
    assert "[rank 1]" in logged.stdout
    assert of_rank.returncode == 0


def test_each_training_is_one_finished_mlflow_run(home, outcomes):
    """K39, K42, K43."""
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=f"sqlite:///{home / 'mlflow.db'}")
    experiment = client.get_experiment_by_name("digits")
    runs = client.search_runs([experiment.experiment_id])

    assert {run.info.run_id for run in runs} == {outcome["mlflow_run_id"] for outcome in outcomes.values()}
    assert {run.info.status for run in runs} == {"FINISHED"}
    for run in runs:
        steps = [point.step for point in client.get_metric_history(run.info.run_id, "loss")]
        assert steps == sorted(set(steps))
        assert len(steps) == 3


def test_a_rank_that_raises_is_the_headline_and_leaves_nothing(home, tmp_path):
    """K14 and "done when" 7: the traceback of the first failing rank ends the log, under a line that names the rank."""
    (tmp_path / "breaks.py").write_text(
        "import os\n"
        "from training.models.mlp import build_model as build\n\n\n"
        "def build_model(**params):\n"
        "    if os.environ['GANGER_RANK'] == '1':\n"
        "        raise ValueError('no weights today')\n"
        "    return build(**params)\n"
    )
    spec = tmp_path / "breaks.yaml"
    spec.write_text(
        "name: breaks\n"
        "data: {source: digits}\n"
        "model: {entrypoint: breaks.py}\n"
        "train: {engine: tensorflow, strategy: multi_worker_mirrored, batch_size: 64, restarts: 0}\n"
        "cluster: {workers: 2}\n"
    )

    answer = ganger(home, "run", spec, "--json")

    outcome = json.loads(answer.stdout)
    assert answer.returncode == 1
    assert outcome["state"] == "failed"
    assert "rank 1" in outcome["error"].splitlines()[0]
    assert "ValueError: no weights today" in answer.stderr.strip().splitlines()[-1]
    assert list_marked(outcome["run_id"]) == []


def test_an_interrupted_training_ends_on_sigterm_and_says_how_to_resume(home, tmp_path):
    """K16: TensorFlow puts a handler of its own in the place of ours; ranks would train on until they are killed."""
    log = tmp_path / "log"
    with start_ganger(home, "run", DIGITS, "--json", "--set", "train.epochs=5000", log=log) as process:
        deadline = time.monotonic() + TIMEOUT_S
        while "epoch 2/5000" not in log.read_text() and time.monotonic() < deadline and process.poll() is None:
            time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        outcome = json.loads(process.communicate(timeout=60)[0])

    result = json.loads((home / "runs" / outcome["run_id"] / "jobs" / "train" / "result.json").read_text())
    assert process.returncode == 130
    assert outcome["state"] == "cancelled"
    assert result["exit_codes"] == {"0": 143, "1": 143}  # by SIGTERM: nothing had to be killed
    assert f"ganger run --resume {outcome['run_id']}" in log.read_text()
    assert list_marked(outcome["run_id"]) == []


LAYER = (
    "import keras\n\n\n"
    "{decorator}\n"
    "class Twice(keras.layers.Layer):\n"
    "    def call(self, x):\n"
    "        return 2 * x\n\n\n"
)
NET = (
    "def build_model():\n"
    "    model = keras.Sequential([keras.layers.Input((64,)), Twice(), keras.layers.Dense(10)])\n"
    "    model.compile('sgd', keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=['accuracy'])\n"
    "    return model\n"
)
REGISTERED = "@keras.saving.register_keras_serializable()"


def write_net(folder, file, text):
    (folder / file).write_text(text + NET)
    spec = folder / "net.yaml"
    spec.write_text(
        f"name: net\ndata: {{source: digits}}\nmodel: {{entrypoint: {file}}}\n"
        "train: {engine: tensorflow, batch_size: 64, epochs: 1}\n"
    )
    return spec


def test_a_model_takes_along_what_it_imports_from_beside_it(home, tmp_path):
    """Success means that the model loads, for whoever has nothing but its folder. `code` is taken by a package.

    K39: a module starts a run when it is imported, to be trained and to be evaluated; the first is the training's.
    """
    (tmp_path / "layers").mkdir()
    (tmp_path / "layers" / "__init__.py").touch()
    logs = "import mlflow\nmlflow.tensorflow.autolog()\nmlflow.start_run()\nmlflow.log_param('own', 'yes')\n"
    (tmp_path / "layers" / "twice.py").write_text(logs + LAYER.format(decorator=REGISTERED))
    (tmp_path / "layers" / "heavy.npy").touch()
    (tmp_path / "beside.py").write_text("from layers.twice import Twice\n")
    spec = write_net(tmp_path, "code.py", "import keras\nimport mlflow\nfrom beside import Twice\n\n\n")

    answer = ganger(home, "run", spec, "--json", cwd=tmp_path)

    assert answer.returncode == 0, answer.stderr
    code = Path(json.loads(answer.stdout)["model_path"], "code")
    assert {str(path.relative_to(code)) for path in code.rglob("*.*") if path.suffix != ".pyc"} == {
        "ganger_user_code.py", "beside.py", "layers/__init__.py", "layers/twice.py",
    }  # fmt: skip
    assert "is not kept: user code logs to MLflow in the step train only" in answer.stderr
    client = connect(f"sqlite:///{home / 'mlflow.db'}")
    run = client.get_run(json.loads(answer.stdout)["mlflow_run_id"])
    assert (run.data.params["own"], run.info.status) == ("yes", "FINISHED")
    experiments = [found.experiment_id for found in client.search_experiments()]
    assert all("ganger.run_id" in found.data.tags for found in client.search_runs(experiments))


def test_a_model_that_does_not_load_elsewhere_fails_before_it_is_registered(home, tmp_path):
    """What training finds by way of its own path is not part of the model: `evaluate` has nothing but its folder."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "far.py").write_text(LAYER.format(decorator=REGISTERED))
    text = (
        f"import sys\n\nimport keras\n\nsys.path.append({str(tmp_path / 'elsewhere')!r})\nfrom far import Twice\n\n\n"
    )
    spec = write_net(tmp_path, "net.py", text)

    answer = ganger(home, "run", spec, "--json", cwd=tmp_path / "elsewhere")

    assert answer.returncode != 0
    outcome = json.loads(answer.stdout)
    assert outcome["state"] == "failed"
    assert "must hold a model" in outcome["error"]
    jobs = {path.parent.name for path in (home / "runs" / outcome["run_id"] / "jobs").glob("*/result.json")}
    assert {"train", "evaluate"} <= jobs
    assert "register_model" not in jobs


def test_a_run_is_tuned_from_an_earlier_one(home, outcomes):
    """By the id of its MLflow run; the frozen layer is said."""
    source = outcomes[2]["mlflow_run_id"]
    answer = ganger(
        home, "run", DIGITS, "--json", "--set", "cluster.workers=1", "--set", "train.epochs=1", "--set",
        "evaluate.require={}", "--set", f"model.initialize_from={source}", "--set", "model.freeze=[dense]",
    )  # fmt: skip
    assert answer.returncode == 0, answer.stderr
    assert f"weights of {source}: 4 loaded (dense/kernel" in answer.stderr
    assert "frozen: dense; " in answer.stderr
    assert json.loads(answer.stdout)["metrics"]["loss"] < outcomes[2]["metrics"]["loss"]


def test_a_model_that_the_server_has_not_is_refused(home, outcomes):
    answer = ganger(home, "run", DIGITS, "--set", "model.initialize_from=models:/nobody@champion")
    assert answer.returncode == 2, answer.stderr
    assert "model.initialize_from: must be a model that the tracking server has" in answer.stderr
