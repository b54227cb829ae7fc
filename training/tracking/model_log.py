"""Uploads a saved model folder as the logged model of a run, as `mlflow.models.Model.log` does for the active run.

The folder itself stays as the training left it: what MLflow adds to `MLmodel` (the ids of the run and of the model)
is added in a staging folder of hard links. `MLmodel` is edited as YAML, so that the file of another MLflow version
keeps all it says.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from training.tracking.store import StoreRefusedError

MODEL_NAME = "model"
TAG_DIGEST = "ganger.model_digest"
_MAX_MODEL_PARAM_LENGTH = 250


def log_model_folder(client: Any, run_id: str, folder: Path, tags: Mapping[str, str]) -> str:
    """Upload `folder` as the logged model of the run and return `models:/m-…`.

    The same files are logged once: a model that is ready is returned as it is, one whose upload broke off is uploaded
    again.

    Args:
        client: An `MlflowClient`.
        run_id: The run that trained it.
        folder: In MLflow's format: `MLmodel` and its files.
        tags: For the logged model.

    Raises:
        StoreRefusedError: `folder` has no readable `MLmodel`.
    """
    description = _read_mlmodel(folder)
    run = client.get_run(run_id)
    model = _find_or_create(client, run, dict(tags) | {TAG_DIGEST: digest_of(folder)})
    if str(model.status) != "READY":
        _link_to_run(client, run, model.model_id)
        with _staged(folder, description | _ids(run_id, model)) as staging:
            client.log_model_artifacts(model.model_id, str(staging))
        client.finalize_logged_model(model.model_id, "READY")
    return f"models:/{model.model_id}"


def _read_mlmodel(folder: Path) -> dict[str, Any]:
    try:
        description = yaml.safe_load((folder / "MLmodel").read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise StoreRefusedError(f"{folder} must hold a model in MLflow's format. Reading MLmodel: {error}") from None
    if not isinstance(description, dict):
        raise StoreRefusedError(f"{folder}/MLmodel must hold a mapping. Received: {type(description).__name__}.")
    return description


def digest_of(folder: Path) -> str:
    """Return a SHA-256 of names and contents of a model's files, without `MLmodel`, which says when it was saved."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and name != "MLmodel" and "__pycache__" not in path.parts:
            with path.open("rb") as stream:
                content = hashlib.file_digest(stream, "sha256").hexdigest()
            digest.update(f"{name}\0{content}\n".encode())
    return digest.hexdigest()


def _find_or_create(client: Any, run: Any, tags: Mapping[str, str]) -> Any:
    experiment_id, run_id = run.info.experiment_id, run.info.run_id
    same = f"source_run_id = '{run_id}' AND tags.`{TAG_DIGEST}` = '{tags[TAG_DIGEST]}'"
    found = client.search_logged_models([experiment_id], filter_string=same, max_results=1)
    if found:
        return found[0]
    params = {name: value for name, value in run.data.params.items() if len(value) <= _MAX_MODEL_PARAM_LENGTH}
    return client.create_logged_model(
        experiment_id, name=MODEL_NAME, source_run_id=run_id, tags=dict(tags), params=params
    )


def _ids(run_id: str, model: Any) -> dict[str, Any]:
    return {
        "run_id": run_id,
        "model_id": model.model_id,
        "model_uuid": model.model_id,
        "artifact_path": model.artifact_location,
    }


def _link_to_run(client: Any, run: Any, model_id: str) -> None:
    """Show the model as output of the run, and the run's last values as the model's."""
    from mlflow.entities import LoggedModelOutput, Metric

    names = [name for name in run.data.metrics if not name.startswith("step/")]
    histories = [client.get_metric_history(run.info.run_id, name) for name in names]
    last = [max(points, key=lambda metric: metric.step) for points in histories if points]
    step = max((metric.step for metric in last), default=0)
    outputs = run.outputs.model_outputs if run.outputs else []
    if model_id not in [output.model_id for output in outputs]:
        client.log_outputs(run.info.run_id, [LoggedModelOutput(model_id, step=step)])
    metrics = [Metric(m.key, m.value, m.timestamp, m.step, model_id=model_id, run_id=run.info.run_id) for m in last]
    if metrics:
        client.log_batch(run.info.run_id, metrics=metrics, synchronous=True)


@contextlib.contextmanager
def _staged(folder: Path, description: Mapping[str, Any]) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.upload.") as name:
        staging = Path(name) / MODEL_NAME
        shutil.copytree(folder, staging, copy_function=_link_or_copy, ignore=shutil.ignore_patterns("__pycache__"))
        (staging / "MLmodel").unlink()
        (staging / "MLmodel").write_text(yaml.safe_dump(dict(description), sort_keys=False), encoding="utf-8")
        yield staging


def _link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
