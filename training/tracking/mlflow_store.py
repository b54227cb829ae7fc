"""The tracking server as MLflow offers it."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import random
import re
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from training.tracking.mask import mask_text
from training.tracking.mlflow_client import connect, error_code, translated_errors
from training.tracking.model_log import log_model_folder
from training.tracking.store import MetricPoint, RunState, StoreAwayError, StoreRefusedError

_EXPERIMENT_TRIES = 8


class MlflowStore:
    """A `TrackingStore` on `MlflowClient`."""

    def __init__(self, uri: str) -> None:
        self._uri = uri
        with _new_database_alone(uri):
            self._client = _retried(lambda: connect(uri))

    def open_experiment(self, name: str) -> str:
        """Return the id of the experiment, made where there is none.

        Raises:
            StoreRefusedError: The experiment is in MLflow's trash; the message says the ways out.
            StoreAwayError: The server does not answer.
        """
        with _new_database_alone(self._uri):
            return str(_retried(lambda: self._open_experiment(name)))

    def _open_experiment(self, name: str) -> str:
        with translated_errors(f"open the experiment {name!r} at", self._uri):
            experiment = self._client.get_experiment_by_name(name)
            if experiment is None:
                try:
                    return str(self._client.create_experiment(name, artifact_location=_artifact_root(self._uri, name)))
                except Exception as error:
                    if error_code(error) != "RESOURCE_ALREADY_EXISTS":
                        raise
                    # Somebody else was quicker: K45.
                    experiment = self._client.get_experiment_by_name(name)
        if experiment is None:
            raise StoreAwayError(f"The experiment {name!r} appeared and vanished at {mask_text(self._uri)}. Try again.")
        _check_not_deleted(experiment, self._uri)
        return str(experiment.experiment_id)

    def artifact_location(self, experiment_id: str) -> str:
        """Return where the artifacts of an experiment go."""
        with translated_errors("read the experiment at", self._uri):
            return str(self._client.get_experiment(experiment_id).artifact_location)

    def find_run(self, experiment_id: str, tag: str, value: str) -> str | None:
        """Return the newest run of the experiment with that tag, or None."""
        with translated_errors("search runs at", self._uri):
            found = self._client.search_runs([experiment_id], f"tags.`{tag}` = '{value}'", max_results=1)
            return str(found[0].info.run_id) if found else None

    def create_run(self, experiment_id: str, name: str, tags: Mapping[str, str], start_ms: int) -> str:
        """Make a running run and return its id."""
        with translated_errors("create a run at", self._uri):
            run = self._client.create_run(experiment_id, start_time=start_ms, tags=dict(tags), run_name=name)
            return str(run.info.run_id)

    def read_run(self, run_id: str) -> RunState | None:
        """Return what is known of the run; None where it was deleted or never was."""
        with translated_errors("read the run at", self._uri):
            try:
                run = self._client.get_run(run_id)
            except Exception as error:
                if error_code(error) == "RESOURCE_DOES_NOT_EXIST":
                    return None
                raise
        if run.info.lifecycle_stage == "deleted":
            return None
        return RunState(
            experiment_id=str(run.info.experiment_id),
            status=str(run.info.status),
            params=dict(run.data.params),
            tags=dict(run.data.tags),
        )

    def log_params(self, run_id: str, params: Mapping[str, str]) -> None:
        """Write params."""
        with translated_errors("log params at", self._uri):
            from mlflow.entities import Param

            self._client.log_batch(run_id, params=[Param(*item) for item in params.items()], synchronous=True)

    def log_metrics(self, run_id: str, points: list[MetricPoint]) -> None:
        """Write points; the server keeps one of equal ones."""
        with translated_errors("log metrics at", self._uri):
            from mlflow.entities import Metric

            metrics = [Metric(p.name, p.value, p.time_ms, p.step) for p in points]
            self._client.log_batch(run_id, metrics=metrics, synchronous=True)

    def set_tags(self, run_id: str, tags: Mapping[str, str]) -> None:
        """Set tags."""
        with translated_errors("set tags at", self._uri):
            from mlflow.entities import RunTag

            self._client.log_batch(run_id, tags=[RunTag(*item) for item in tags.items()], synchronous=True)

    def set_status(self, run_id: str, status: str, end_ms: int | None) -> None:
        """Set the status; `end_ms` for one that is an end."""
        with translated_errors("set the run's status at", self._uri):
            if end_ms is None:
                self._client.update_run(run_id, status=status)
            else:
                self._client.set_terminated(run_id, status=status, end_time=end_ms)

    def last_point(self, run_id: str, name: str) -> tuple[int, float] | None:
        """Return step and value of the last point of a metric."""
        with translated_errors("read metrics at", self._uri):
            history = self._client.get_metric_history(run_id, name)
            last = max(history, key=lambda metric: (metric.step, metric.timestamp), default=None)
            return None if last is None else (int(last.step), float(last.value))

    def log_text(self, run_id: str, text: str, artifact: str) -> None:
        """Write a text artifact."""
        with translated_errors(f"write the artifact {artifact} at", self._uri):
            self._client.log_text(run_id, text, artifact)

    def log_model(self, run_id: str, folder: Path, tags: Mapping[str, str]) -> str:
        """Upload a model folder as the run's logged model and return its URI; the one that is there stays.

        Raises:
            StoreRefusedError: The folder is none in MLflow's format, or the server refuses it.
            StoreAwayError: The server or its artifact store cannot be written now; the folder is untouched.
        """
        with translated_errors(f"log the model in {folder} at", self._uri):
            return log_model_folder(self._client, run_id, folder, tags)


def _check_not_deleted(experiment: Any, uri: str) -> None:
    if experiment.lifecycle_stage != "deleted":
        return
    raise StoreRefusedError(
        f"The experiment {experiment.name!r} must not be deleted. It is in the trash of {mask_text(uri)}. "
        f"Restore it with `mlflow experiments restore --experiment-id {experiment.experiment_id}`, "
        "remove it for good with `mlflow gc`, or give the pipeline another `experiment`."
    )


def _retried(call: Callable[[], Any]) -> Any:
    """Call again while the store is away: several processes make the tables of a new database at once (K45)."""
    for attempt in range(_EXPERIMENT_TRIES - 1):
        try:
            return call()
        except StoreAwayError as error:
            if not _is_contention(error):
                raise
            time.sleep(random.uniform(0.05, 0.1) * 2**attempt)
    return call()


def _is_contention(error: StoreAwayError) -> bool:
    text = str(error).lower()
    return any(sign in text for sign in ("locked", "already exists", "no such table", "unique constraint", "alembic"))


def sqlite_path(uri: str) -> Path | None:
    """Return the file of a SQLite address, or None for any other address."""
    if not uri.startswith("sqlite:///"):
        return None
    return Path(unquote(uri.removeprefix("sqlite:///").partition("?")[0])).absolute()


@contextlib.contextmanager
def _new_database_alone(uri: str) -> Iterator[None]:
    """Let one process of this host at a time make the tables and experiments of a SQLite file."""
    path = sqlite_path(uri)
    if path is None:
        yield
        return
    with translated_errors("write beside", uri):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path.with_name(f"{path.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _artifact_root(uri: str, experiment: str) -> str | None:
    # Without a server, MLflow would put artifacts into `mlruns` of whatever folder the process runs in (K44).
    path = sqlite_path(uri)
    if path is None:
        return None
    # Plain letters: MLflow decodes the address once too often when it deletes.
    plain = re.sub(r"[^A-Za-z0-9_.-]", "_", experiment)[:80].lstrip(".")
    digest = "" if plain == experiment else f"_{hashlib.sha256(experiment.encode()).hexdigest()[:6]}"
    return (path.parent / "mlartifacts" / f"{plain}{digest}").as_uri()
