from __future__ import annotations

from types import SimpleNamespace

import pytest

from ganger.links import MLflowRunLink
from training.run.folder import RunFolder, run_id_of
from training.run.job import TrackingRef


def link() -> str:
    return MLflowRunLink().get_link(None, ti_key=SimpleNamespace(dag_id="d", run_id="r"))


@pytest.fixture
def tracked(home: object) -> None:
    ref = TrackingRef(tracking_uri="http://127.0.0.1:5000", experiment_id="3", run_id="abc")
    ref.write(RunFolder.of(run_id_of("d", "r")).tracking)


@pytest.mark.usefixtures("tracked")
def test_it_leads_to_the_page_of_the_run_without_a_password(monkeypatch: pytest.MonkeyPatch) -> None:
    """K18."""
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "https://user:s3cr3t-XYZ@mlflow.example/path/")
    assert link() == "https://mlflow.example/path/#/experiments/3/runs/abc"


@pytest.mark.usefixtures("tracked")
def test_the_pages_may_be_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://10.0.0.1:5000")
    monkeypatch.setenv("GANGER_MLFLOW_UI", "https://mlflow.example")
    assert link() == "https://mlflow.example/#/experiments/3/runs/abc"


@pytest.mark.usefixtures("tracked")
def test_a_store_without_pages_has_no_link() -> None:
    assert link() == ""


def test_a_run_that_is_not_tracked_yet_has_no_link(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:5000")
    assert link() == ""
