"""A script as a DAG run: every task is there, and those that have nothing to do say so."""

from __future__ import annotations

from pathlib import Path

import pytest
from airflow.dag_processing.dagbag import DagBag

from ganger.operators import HorovodTrainingOperator
from training import settings
from training.run.folder import RunFolder, run_id_of
from training.run.job import TrackingRef
from training.settings import REPOSITORY

pytestmark = [pytest.mark.airflow, pytest.mark.engine, pytest.mark.timeout(300)]
SCRIPT = """
import os, sys
import mlflow
print("rank", os.environ["HOROVOD_RANK"], "of", os.environ["HOROVOD_SIZE"], sys.argv[1:])
with mlflow.start_run():
    mlflow.log_metric("of_the_script", 1.0 + int(os.environ["HOROVOD_RANK"]))
"""


@pytest.mark.usefixtures("database", "signals")
def test_a_script_with_its_own_rows_runs_as_a_dag(home: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """K39: two ranks, one run."""
    uri = f"sqlite:///{home / 'mlflow.db'}"
    monkeypatch.setenv(settings.TRACKING_URI, uri)
    monkeypatch.setenv(settings.SLOTS, "2")
    (folder / "train.py").write_text(SCRIPT)
    (folder / "own.yaml").write_text(
        "name: own\ntrain: {engine: horovod, script: train.py, args: [--fast]}\ncluster: {workers: 2}\n"
    )
    dag = DagBag(REPOSITORY / "dags").dags["own"]
    assert isinstance(dag.get_task("train"), HorovodTrainingOperator)

    run = dag.test()

    assert {ti.state for ti in run.get_task_instances()} == {"success"}
    pull = run.get_task_instance("train").xcom_pull
    owned = RunFolder.of(run_id_of("own", run.run_id))
    tracked = TrackingRef.read(owned.tracking)
    assert tracked is not None
    assert pull(task_ids="train") == {"mlflow_run_id": tracked.run_id, "workers": 2}
    assert pull(task_ids="evaluate") == {"metrics": {}, "rows": 0}
    assert "[rank 1] rank 1 of 2 ['--fast']" in owned.job("train").merged_log.read_text()

    from mlflow import MlflowClient

    (only,) = MlflowClient(uri).search_runs([tracked.experiment_id])
    assert (only.info.run_id, only.info.status) == (tracked.run_id, "FINISHED")
    assert only.data.metrics == {"of_the_script": 1.0}
