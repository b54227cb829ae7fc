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

pytestmark = [pytest.mark.airflow, pytest.mark.engine, pytest.mark.timeout(300)]
STRATEGIES = ("single", "mirrored", "central_storage", "parameter_server", "horovod")


@pytest.fixture(scope="module")
def bag() -> DagBag:
    return DagBag(REPOSITORY / "dags")


@pytest.fixture(scope="module")
def shared_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One home of all these runs: rows are prepared once, and MLflow's store is made once."""
    return tmp_path_factory.mktemp("shipped")


def test_there_is_a_pipeline_for_each_strategy(bag: DagBag) -> None:
    """The same model and rows: only what the strategy is and needs differs."""
    shipped = {name: load_pipeline(REPOSITORY / f"dags/pipelines/digits_{name}.yaml").spec for name in STRATEGIES}
    digits = load_pipeline(REPOSITORY / "dags/pipelines/digits.yaml").spec

    assert digits.train.strategy == "multi_worker_mirrored"
    for name, spec in shipped.items():
        assert (spec.train.strategy, f"digits_{name}" in bag.dags) == (name, True)
        assert (spec.model, spec.data, spec.train.batch_size) == (digits.model, digits.data, digits.train.batch_size)


@pytest.mark.usefixtures("database", "signals")
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_pipeline_of_a_strategy_runs(
    bag: DagBag, shared_home: Path, strategy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(settings.HOME, str(shared_home))
    dag = bag.dags[f"digits_{strategy}"]
    cluster = load_pipeline(REPOSITORY / f"dags/pipelines/{dag.dag_id}.yaml").spec.cluster

    run = dag.test(mark_success_pattern="evaluate|register_model")

    assert {ti.state for ti in run.get_task_instances()} == {"success"}
    told = run.get_task_instance("train").xcom_pull(task_ids="train")
    assert told["workers"] == count_processes(strategy, cluster.workers)
    assert told["metrics"]["val_accuracy"] >= 0.9
    folder = RunFolder.of(run_id_of(dag.dag_id, run.run_id))
    assert (folder.model / "MLmodel").exists()
    said = f"  {count_replicas(strategy, cluster.workers)} replicas  "
    assert (said in folder.job("train").merged_log.read_text()) is (strategy != "single")
    tracked = TrackingRef.read(folder.tracking)
    assert tracked is not None
    assert tracked.run_id == told["mlflow_run_id"]
