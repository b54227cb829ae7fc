"""Each pipeline that ships for a strategy, as a DAG run: Airflow's runner, real ranks, MLflow.

`test_digits.py` runs that of `multi_worker_mirrored`, through to the registry. What comes before and after training is
the same under every strategy of a framework, and is not run again here: `engine/test_every_strategy.py` evaluates what
each has trained, and what Gluon has trained predicts below.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from airflow.dag_processing.dagbag import DagBag

from training import settings
from training.checkpoints.tensors import read_tensors
from training.run.folder import RunFolder, run_id_of
from training.run.job import TrackingRef
from training.settings import REPOSITORY
from training.spec.loader import load_pipeline
from training.spec.parallelism import count_processes, count_replicas
from training.spec.pipeline import PipelineSpec
from training.steps.context import StepContext
from training.steps.prepare import prepare_data
from training.steps.train import train
from training.tracking.mlflow_client import connect
from training.tracking.registry import register_version

pytestmark = [pytest.mark.airflow, pytest.mark.engine, pytest.mark.timeout(300)]
KERAS = ("single", "mirrored", "central_storage", "parameter_server", "horovod")
#: Those whose every step is run: the first of MXNet.
WHOLE = ("mxnet_single",)
GLUON = (
    "mxnet_single",
    "mxnet_data_parallel",
    "mxnet_model_parallel",
    "mxnet_dist_sync",
    "mxnet_dist_async",
    "mxnet_horovod",
)


@pytest.fixture(scope="module")
def bag() -> DagBag:
    return DagBag(REPOSITORY / "dags")


@pytest.fixture(scope="module")
def shared_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One home of all these runs: rows are prepared once, and MLflow's store is made once."""
    return tmp_path_factory.mktemp("shipped")


@pytest.fixture(scope="module")
def ran() -> dict[str, RunFolder]:
    """The runs that succeeded, by the name of what was run; filled by the tests."""
    return {}


def require(ran: dict[str, RunFolder], names: tuple[str, ...]) -> list[RunFolder]:
    missing = [name for name in names if name not in ran]
    if missing:
        pytest.skip(f"needs the runs of {', '.join(missing)}, which were not selected or failed")
    return [ran[name] for name in names]


def test_there_is_a_pipeline_for_each_strategy(bag: DagBag) -> None:
    """The same rows, and one model for each framework: only what the strategy is and needs differs."""
    digits = load_pipeline(REPOSITORY / "dags/pipelines/digits.yaml").spec
    models = {"digits": digits.model, "mxnet": load_shipped("mxnet_single").model}

    assert digits.train.strategy == "multi_worker_mirrored"
    for name in KERAS + GLUON:
        spec = load_shipped(name)
        assert (spec.train.strategy, f"digits_{name}" in bag.dags) == (name.removeprefix("mxnet_"), True)
        assert spec.model == models["mxnet" if name in GLUON else "digits"]
        assert (spec.data, spec.train.batch_size) == (digits.data, digits.train.batch_size)


def load_shipped(name: str) -> PipelineSpec:
    return load_pipeline(REPOSITORY / f"dags/pipelines/digits_{name}.yaml").spec


@pytest.mark.usefixtures("database", "signals")
@pytest.mark.parametrize("name", KERAS + GLUON)
def test_the_pipeline_of_a_strategy_runs(
    bag: DagBag, shared_home: Path, ran: dict[str, RunFolder], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(settings.HOME, str(shared_home))
    dag, spec = bag.dags[f"digits_{name}"], load_shipped(name)
    strategy, workers, devices = spec.train.strategy, spec.cluster.workers, spec.cluster.devices

    run = dag.test(mark_success_pattern=None if name in WHOLE else "provision_cluster|evaluate|register_model")

    assert {ti.state for ti in run.get_task_instances()} == {"success"}
    told = run.get_task_instance("train").xcom_pull(task_ids="train")
    assert told["workers"] == count_processes(strategy, workers)
    assert told["metrics"]["val_accuracy"] >= 0.9
    folder = RunFolder.of(run_id_of(dag.dag_id, run.run_id))
    assert (folder.model / "MLmodel").exists()
    replicas = count_replicas(strategy, workers, devices)
    assert (f"  {replicas} replicas  " in folder.job("train").merged_log.read_text()) is (replicas > 1)
    tracked = TrackingRef.read(folder.tracking)
    assert tracked is not None
    assert tracked.run_id == told["mlflow_run_id"]
    ran[name] = folder


#: Run by the Python of MXNet's environment: rows, labels, and the folders of models that MLflow has.
PREDICT = """
import json, sys, mlflow, numpy as np
sys.modules["training"] = None  # whoever serves a model need not have it
rows, labels = (np.load(path) for path in sys.argv[1:3])
for path in sys.argv[3:]:
    model = mlflow.pyfunc.load_model(path)
    print("MODEL", json.dumps([float((model.predict(rows).argmax(1) == labels).mean()), str(model.metadata.signature)]))
"""


def test_what_mlflow_has_of_each_gluon_run_predicts(ran: dict[str, RunFolder], tmp_path: Path) -> None:
    """As a pyfunc of the environment `mxnet`, with nothing of Ganger: 0.9 of the held-out rows are right."""
    runs = require(ran, GLUON)
    refs = [TrackingRef.read(run.tracking) for run in runs]
    models = [str(ref and ref.model_uri).removeprefix("models:/") for ref in refs]
    client = connect(str(refs[0] and refs[0].tracking_uri))
    paths = [client.get_logged_model(model).artifact_location.removeprefix("file://") for model in models]
    dataset = Path(json.loads(runs[0].dataset.read_text())["path"])
    arguments = [dataset / "validation_x.npy", dataset / "validation_y.npy", *paths]
    python = REPOSITORY / ".engines/mxnet/bin/python"
    answer = subprocess.run(
        [str(python), "-c", PREDICT, *map(str, arguments)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    told = [json.loads(line.removeprefix("MODEL ")) for line in answer.stdout.splitlines() if line.startswith("MODEL ")]
    assert len(told) == len(GLUON)
    for name, (accuracy, signature) in zip(GLUON, told, strict=True):
        assert accuracy >= 0.9, name
        assert "Tensor('float32', (-1, 64))" in signature
        assert "Tensor('float32', (-1, 10))" in signature


def test_a_gluon_model_is_tuned_from_a_registered_version(
    ran: dict[str, RunFolder], shared_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All but the last layer are that version's to the bit; the log says what was loaded and frozen."""
    (source,) = require(ran, ("mxnet_single",))
    monkeypatch.setenv(settings.HOME, str(shared_home))
    ref = TrackingRef.read(source.tracking)
    assert ref is not None
    register_version(ref, "digits-gluon", "champion", {})
    changes = {
        "model.initialize_from": "models:/digits-gluon@champion",
        "model.freeze": ["hidden"],
        "train.epochs": 1,
    }
    file = load_pipeline(REPOSITORY / "dags/pipelines/digits_mxnet_model_parallel.yaml", changes)
    lines: list[str] = []
    ctx = StepContext(file=file, run=RunFolder.of("tuned"), log=lines.append)

    prepare_data(ctx)
    train(ctx)

    said = "\n".join(lines)
    loaded = "hidden.0.weight, hidden.0.bias, output.weight, output.bias"
    assert f"weights of models:/digits-gluon@champion: 4 loaded ({loaded})" in said
    assert "frozen: hidden; 1290 of 9610 parameters are trained" in said
    before, after = read_weights(source.model), read_weights(ctx.run.model)
    same = {name for name in before if np.array_equal(before[name], after[name])}
    assert same == {"hidden.0.weight", "hidden.0.bias"}
    assert np.abs(before["output.weight"] - after["output.weight"]).max() < 0.05  # 22 steps of Adam from there


def read_weights(model: Path) -> dict[str, np.ndarray]:
    (path,) = model.rglob("weights.safetensors")
    return read_tensors(path)


@pytest.mark.usefixtures("database", "signals")
def test_the_stages_of_a_pipeline_come_up_in_their_order_and_train_together(
    bag: DagBag, shared_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(settings.HOME, str(shared_home))
    dag = bag.dags["digits_pipeline"]

    run = dag.test(mark_success_pattern="register_model")

    assert {ti.state for ti in run.get_task_instances()} == {"success"}
    stages = [run.get_task_instance(f"pipeline.stage_{stage}") for stage in range(2)]
    ends = [ti.end_date for ti in [*stages, run.get_task_instance("train")]]
    assert ends == sorted(ends)
    assert run.get_task_instance("evaluate").xcom_pull(task_ids="evaluate")["metrics"]["accuracy"] >= 0.9
    job = RunFolder.of(run_id_of(dag.dag_id, run.run_id)).job("train")
    lines = job.merged_log.read_text().splitlines()
    begins = [lines.index(f"[rank {rank}] importing training.engines.tensorflow_keras") for rank in (1, 2, 0)]
    readies = [next(i for i, line in enumerate(lines) if line.startswith(f"[rank {rank}] ready")) for rank in (1, 2, 0)]
    assert sorted([*begins, *readies]) == [begins[0], readies[0], begins[1], readies[1], begins[2], readies[2]]
    assert "stage 1  dense_2 ... dense_4" in job.merged_log.read_text()
