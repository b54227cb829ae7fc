"""A site of Airflow of its own for these tests: a new AIRFLOW_HOME, our airflow.cfg, our DAGs and plugins.

Airflow reads its settings when it is imported, so they are set here, before any test module imports it.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
AIRFLOW_HOME = Path(tempfile.mkdtemp(prefix="ganger-airflow-"))

os.environ.update(
    {
        "AIRFLOW_HOME": str(AIRFLOW_HOME),
        "AIRFLOW_CONFIG": str(REPOSITORY / "airflow.cfg"),
        "AIRFLOW__CORE__DAGS_FOLDER": str(REPOSITORY / "dags"),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(REPOSITORY / "plugins"),
        "AIRFLOW__API_AUTH__JWT_SECRET": secrets.token_hex(32),
        "AIRFLOW__API__SECRET_KEY": secrets.token_hex(32),
        "AIRFLOW__LOGGING__LOGGING_LEVEL": "WARNING",
        "GANGER_SLOTS": "4",  # as many ranks as the tests start, on however few cores
    }
)


#: Warnings of Airflow 3.3.2 about itself and its dependencies, which nothing here can prevent.
AIRFLOWS_OWN = (
    "ignore:GitWildMatchPattern:DeprecationWarning",  # its reader of .airflowignore, with pathspec 1.0
    "ignore:Using `httpx` with `starlette.testclient` is deprecated",  # its API server, run in process by dag.test()
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            for warning in AIRFLOWS_OWN:
                item.add_marker(pytest.mark.filterwarnings(warning))


def pytest_sessionfinish() -> None:
    shutil.rmtree(AIRFLOW_HOME, ignore_errors=True)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder for runs, of this test alone."""
    folder = tmp_path / "home"
    monkeypatch.setenv("GANGER_HOME", str(folder))
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    return folder


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of pipeline files of this test alone, known to the loader."""
    pipelines = tmp_path / "pipelines"
    pipelines.mkdir()
    monkeypatch.setenv("GANGER_PIPELINES", str(pipelines))
    return pipelines


@pytest.fixture
def signals() -> Iterator[None]:
    """Puts back the signal handler that Airflow's task runner leaves behind."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.fixture(scope="session")
def database() -> Iterator[None]:
    """A migrated metadata database (SQLite)."""
    subprocess.run([sys.executable, "-m", "airflow", "db", "migrate"], check=True, capture_output=True, timeout=180)
    yield
    from airflow import settings

    settings.dispose_orm(do_log=False)
