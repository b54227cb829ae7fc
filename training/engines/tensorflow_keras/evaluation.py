"""Task `evaluate`: the saved model on the held-out rows, in one process, against what was required of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras

from training.data.dataset import open_dataset
from training.engines.bounds import check_bounds
from training.engines.tensorflow_keras.rows import HeldOutRows
from training.engines.tensorflow_keras.runtime import list_devices, list_versions, prepare_runtime
from training.engines.tensorflow_keras.training_job import require_model
from training.engines.tensorflow_keras.user_dataset import UserDataset
from training.engines.tensorflow_keras.user_rows import read_held_out
from training.engines.tensorflow_keras.validating import Evaluation
from training.entrypoint import parse_entrypoint
from training.errors import WorkerError
from training.model_file import load_model_file
from training.run.rank import RankContext
from training.spec.pipeline import ModelSpec, PipelineSpec


def evaluate(ctx: RankContext) -> None:
    """Evaluate the model in `payload["model_dir"]` and check `evaluate.require`.

    Raises:
        SpecError: A required metric is none of the model's.
        EvaluationError: The model does not reach what is required.
        WorkerError: The model does not load.
    """
    spec = PipelineSpec.model_validate(ctx.payload["spec"])
    prepare_runtime(ctx, spec.train.seed)
    ctx.ready(versions=list_versions(), devices=list_devices())
    if spec.train.script is None:
        _import_module(require_model(spec), Path(ctx.payload["base_dir"]))
    ctx.heartbeat("evaluating")
    # First: it must load without the file, which may give the rows.
    model = _load_model(ctx) if spec.builds_dataset else None
    held_out = _open_held_out(ctx, spec)
    rows = held_out.count() if held_out else 0
    if held_out is None or not rows:  # then nothing is required either: the loader or the training sees to that
        print("No rows are held out: there is nothing to evaluate on.", flush=True)
        ctx.result({"metrics": {}, "rows": 0})
        return
    metrics = Evaluation(model or _load_model(ctx)).run(held_out, spec.train.batch_size)
    print(f"{rows} held-out rows: " + "  ".join(f"{name} {value:.6g}" for name, value in metrics.items()), flush=True)
    ctx.result({"metrics": metrics, "rows": rows})
    check_bounds(metrics, spec.evaluate.bounds(), rows)


def _open_held_out(ctx: RankContext, spec: PipelineSpec) -> HeldOutRows | None:
    if spec.data is not None and spec.builds_dataset:
        file = load_model_file(require_model(spec), Path(ctx.payload["base_dir"]))
        return read_held_out(UserDataset(file, spec.data, spec.train.seed, ctx.threads), spec.train.batch_size)
    dataset = open_dataset(Path(ctx.payload["dataset"]))
    return HeldOutRows(x=dataset.validation_x, y=dataset.validation_y)


def _load_model(ctx: RankContext) -> Any:
    folder = ctx.payload["model_dir"]
    try:
        return load_keras_model(folder)
    except Exception as error:
        raise WorkerError(f"{folder} must hold a model. Received: {type(error).__name__}: {error}") from error


def load_keras_model(folder: str) -> Any:
    """Return the compiled Keras model in `folder`, saved by MLflow's `tensorflow` or its `keras`.

    Raises:
        ValueError: It is another kind of model.
        Exception: It does not load: whatever MLflow, Keras or the model's own code raises.
    """
    import mlflow.keras
    import mlflow.models
    import mlflow.tensorflow

    flavors = mlflow.models.Model.load(folder).flavors
    model = (mlflow.keras if "keras" in flavors else mlflow.tensorflow).load_model(folder)
    if not isinstance(model, keras.Model) or not getattr(model, "compiled", False):
        raise ValueError(f"no compiled Keras model, but a {type(model).__module__}.{type(model).__qualname__}")
    return model


def _import_module(model: ModelSpec, base_dir: Path) -> None:
    """Import a model's module: it is not part of the saved model.

    A file is, and must do without us: so would whoever serves the model.
    """
    if parse_entrypoint(model.entrypoint, Path(), "model.entrypoint").path is None:
        load_model_file(model, base_dir)
