"""One Airflow with its MLflow for all live tests, as `ganger serve` starts them, with short heartbeats and own DAGs."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from site_of_tests import DAGS, HEARTBEAT_TIMEOUT_S, Site, wait_until

from tools.airflow_api import AirflowApi
from training.run.folder import JobFolder
from training.run.follow import stop
from training.serve import start_services, stop_services

SETTINGS = {
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": str(HEARTBEAT_TIMEOUT_S),
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "1",
    "AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL": "1",
    # Gangs that mostly wait may share the cores of a small machine.
    "GANGER_SLOTS": "6",
    "AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST": json.dumps(
        [
            {
                "name": "live",
                "classpath": "airflow.dag_processing.bundles.local.LocalDagBundle",
                "kwargs": {"path": str(Path(__file__).parent / "dags")},
            }
        ]
    ),
}


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    home = tmp_path_factory.mktemp("live") / "home"
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith(("AIRFLOW", "MLFLOW", "GANGER_HOME"))]:
            patch.delenv(name)
        for name, value in SETTINGS.items():
            patch.setenv(name, value)
        try:
            services = start_services(home, log=print)
            api = AirflowApi(services.airflow_url)
            api.login()
            wait_until(lambda: all(api.has_dag(dag) for dag in DAGS), f"the DAGs {DAGS}")
            yield Site(services, home, api)
        finally:
            stop_services(home)
            for job in home.glob("runs/*/jobs/*"):  # of tests that failed
                stop(JobFolder(job), "the tests are over", wait_s=10)
