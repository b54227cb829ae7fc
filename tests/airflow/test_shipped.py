"""Each pipeline that ships for a strategy, as a DAG run: Airflow's runner, real ranks, MLflow.

`test_digits.py` runs that of `multi_worker_mirrored`, through to the registry. What comes after training is the same
under every strategy, and is not run again here: `engine/test_every_strategy.py` evaluates what each has trained.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from airflow.dag_processing.dagbag import DagBag

from training import settings
from training.run.folder import RunFolder, run_id_of
from training.run.job import TrackingRef
from training.settings import REPOSITORY
from training.spec.loader import load_pipeline
from training.spec.parallelism import count_processes, count_replicas
from training.spec.pipeline import PipelineSpec

pytestmark = [pytest.mark.airflow, pytest.mark.engine, pytest.mark.timeout(300)]
KERAS = ("single", "mirrored", "central_storage", "parameter_server", "horovod")
GLUON = ("mxnet_single", "mxnet_data_parallel", "mxnet_model_parallel", "mxnet_dist_sync", "mxnet_dist_async")


@pytest.fixture(scope="module")
def bag() -> DagBag:
    return DagBag(REPOSITORY / "dags")


@pytest.fixture(scope="module")
def shared_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One home of all these runs: rows are prepared once, and MLflow's store is made once."""
    return tmp_path_factory.mktemp("shipped")


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
    bag: DagBag, shared_home: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(settings.HOME, str(shared_home))
    dag, spec = bag.dags[f"digits_{name}"], load_shipped(name)
    strategy, workers, devices = spec.train.strategy, spec.cluster.workers, spec.cluster.devices

    run = dag.test(mark_success_pattern="evaluate|register_model")

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
