"""Buttons on the page of a task instance."""

from __future__ import annotations

from typing import Any

from airflow.sdk import BaseOperatorLink

from training import settings
from training.run.folder import RunFolder, run_id_of
from training.run.job import TrackingRef


class MLflowRunLink(BaseOperatorLink):
    """Leads to the MLflow run of the training, where MLflow has a web page."""

    name = "MLflow run"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:
        """Return the address of the run's page; empty where there is none. Called in the task's process, at its end."""
        ref = TrackingRef.read(RunFolder.of(run_id_of(ti_key.dag_id, ti_key.run_id)).tracking)
        page = settings.read_mlflow_ui()
        if ref is None or page is None:
            return ""
        return f"{page}/#/experiments/{ref.experiment_id}/runs/{ref.run_id}"
