"""The pipeline that ships, once through everything: Airflow's runner, two TensorFlow processes, MLflow."""

from __future__ import annotations

import os
from pathlib import Path

import psutil
import pytest
from airflow.dag_processing.dagbag import DagBag

from training import settings
from training.run.folder import RunFolder, run_id_of
from training.run.job import TrackingRef
from training.settings import REPOSITORY

pytestmark = [pytest.mark.airflow, pytest.mark.engine, pytest.mark.timeout(600)]


@pytest.mark.usefixtures("database", "signals")
def test_the_digits_dag_trains_two_workers_and_registers_the_model(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uri = f"sqlite:///{home / 'mlflow.db'}"
    monkeypatch.setenv(settings.TRACKING_URI, uri)
    run = DagBag(REPOSITORY / "dags").dags["digits"].test()
    assert {ti.task_id: ti.state for ti in run.get_task_instances()} == dict.fromkeys(
        ("prepare_data", "provision_cluster", "train", "evaluate", "register_model", "teardown_cluster"), "success"
    )
    assert run.state == "success"
    pull = run.get_task_instance("train").xcom_pull
    assert pull(task_ids="train")["workers"] == 2
    assert pull(task_ids="evaluate")["metrics"]["accuracy"] >= 0.9

    from mlflow import MlflowClient

    folder = RunFolder.of(run_id_of("digits", run.run_id))
    tracked = TrackingRef.read(folder.tracking)
    assert tracked is not None
    client = MlflowClient(uri)
    (only,) = client.search_runs([tracked.experiment_id])
    assert (only.info.run_id, only.info.status) == (tracked.run_id, "FINISHED")
    assert only.data.tags["dag_run_id"] == run.run_id
    assert client.get_model_version_by_alias("digits", "champion").run_id == tracked.run_id
    assert marked_processes(folder.run_id) == []


def marked_processes(run_id: str) -> list[int]:
    """Pids of the processes that bear the mark of a run."""
    found = []
    for process in psutil.process_iter():
        try:
            mark = process.environ().get(settings.MARK, "") if process.pid != os.getpid() else ""
        except psutil.Error:
            continue
        if mark.startswith(f"{run_id}/"):
            found.append(process.pid)
    return found
