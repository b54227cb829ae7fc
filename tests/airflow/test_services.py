"""The real Airflow and the real MLflow server, started and stopped as `ganger serve` and `make demo` do."""

import os
import urllib.request

import psutil
import pytest

from training.serve import read_services, start_services, stop_services
from training.serve.health import poll_health
from training.serve.port import is_free

pytestmark = pytest.mark.airflow


def find_members(sessions):
    found = []
    for process in psutil.process_iter():
        try:
            if os.getsid(process.pid) in sessions and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
        except (ProcessLookupError, psutil.NoSuchProcess):
            continue
    return found


@pytest.mark.timeout(400)
def test_services_start_answer_are_reused_and_leave_nothing(tmp_path, monkeypatch):
    """K16."""
    for name in [name for name in os.environ if name.startswith("AIRFLOW")]:
        monkeypatch.delenv(name)
    lines = []
    try:
        services = start_services(tmp_path, log=lines.append)

        assert poll_health(services) == {"Airflow": True, "MLflow": True}
        assert read_services(tmp_path) == services
        assert start_services(tmp_path, log=lines.append) == services
        assert lines[-1].startswith("Airflow and MLflow run already")
        with urllib.request.urlopen(services.mlflow_url, timeout=30) as page:
            assert b"MLflow" in page.read()
    finally:
        stopped = stop_services(tmp_path)

    assert len(stopped) == 5
    assert find_members(set(services.pids.values())) == []
    assert is_free(int(services.airflow_url.rpartition(":")[2]))
    assert is_free(int(services.mlflow_url.rpartition(":")[2]))
    assert read_services(tmp_path) is None
