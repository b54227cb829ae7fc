"""Is there one MLflow run, closed, on one rising step axis, and is a model registered only if it was trained?"""

from __future__ import annotations

from typing import Any

from tests.chaos.site import Site
from tests.chaos.watched_run import WatchedRun

_STATUS = {"succeeded": "FINISHED", "failed": "FAILED", "cancelled": "KILLED"}


def check_none_running(site: Site) -> list[str]:
    """Check that no MLflow run is left open."""
    running = [run.info.run_name for run in _list_runs(site) if run.info.status == "RUNNING"]
    return [f"no MLflow run may be RUNNING. Received: {running}"] if running else []


def check_tracking(site: Site, run: WatchedRun, model: str, state: str) -> list[str]:
    """Check what MLflow tells.

    Args:
        site: Where the server is.
        run: The training.
        model: Name under which it registers.
        state: How it ended.
    """
    client = _connect(site)
    problems = check_none_running(site)
    ours = [found for found in _list_runs(site) if found.data.tags.get("ganger.run_id") == run.folder.run_id]
    status = [found.info.status for found in ours]
    if status != [_STATUS[state]]:
        problems.append(f"there must be one MLflow run, {_STATUS[state]}. Received: {status}")
    for found in ours:
        problems += _check_axes(client, found)
    versions = len(client.search_model_versions(f"name='{model}'"))
    if versions != (state == "succeeded"):
        problems.append(f"a model is registered once, if it was trained ({state}). Received: {versions} versions")
    return problems


def _connect(site: Site) -> Any:
    from mlflow import MlflowClient

    return MlflowClient(tracking_uri=site.server.uri)


def _list_runs(site: Site) -> list[Any]:
    client = _connect(site)
    return list(client.search_runs([experiment.experiment_id for experiment in client.search_experiments()]))


def _check_axes(client: Any, found: Any) -> list[str]:
    problems = []
    for name in found.data.metrics:
        steps = [point.step for point in client.get_metric_history(found.info.run_id, name)]
        if steps != sorted(set(steps)):
            problems.append(f"the steps of {name} must rise. Received: {steps}")
    return problems
