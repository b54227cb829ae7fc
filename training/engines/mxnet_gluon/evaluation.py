"""Task `evaluate`: the saved model on the held-out rows, in one process, against what was required of it."""

from __future__ import annotations

from pathlib import Path

import mxnet as mx

from training.data.dataset import open_dataset
from training.engines.bounds import check_bounds
from training.engines.mxnet_gluon.gluon_model import GluonModel, build_loss, build_metrics
from training.engines.mxnet_gluon.runtime import list_versions, prepare_seeds
from training.engines.mxnet_gluon.validating import evaluate_model
from training.engines.training_job import require_model
from training.errors import WorkerError
from training.model_file import load_model_file
from training.run.rank import RankContext
from training.spec.pipeline import PipelineSpec


def evaluate(ctx: RankContext) -> None:
    """Evaluate the model in `payload["model_dir"]` and check `evaluate.require`.

    Block and parameters are those that were saved; loss and metrics are the model file's.

    Raises:
        SpecError: A required metric is none of the model's.
        EvaluationError: The model does not reach what is required.
        WorkerError: The model does not load.
    """
    spec = PipelineSpec.model_validate(ctx.payload["spec"])
    prepare_seeds(spec.train.seed)
    ctx.ready(versions=list_versions())
    dataset = open_dataset(Path(ctx.payload["dataset"]))
    rows = dataset.manifest.validation_rows
    if not rows:  # then nothing is required either: the loader sees to that
        print("No rows are held out: there is nothing to evaluate on.", flush=True)
        ctx.result({"metrics": {}, "rows": 0})
        return
    file = load_model_file(require_model(spec), Path(ctx.payload["base_dir"]))
    ctx.heartbeat("evaluating")
    net = load_block(ctx.payload["model_dir"])
    model = GluonModel(net=net, loss=build_loss(file, dataset), metrics=build_metrics(file, dataset), optimizer=None)
    metrics = evaluate_model(
        model, dataset.validation_x, dataset.validation_y, spec.train.batch_size, mx.cpu(0), lambda: None
    )
    print(f"{rows} held-out rows: " + "  ".join(f"{name} {value:.6g}" for name, value in metrics.items()), flush=True)
    ctx.result({"metrics": metrics, "rows": rows})
    check_bounds(metrics, spec.evaluate.bounds(), rows)


def load_block(folder: str) -> object:
    """Return the block of the model in `folder`, loaded as any user of MLflow would.

    Raises:
        WorkerError: It does not load, or is no model that Ganger saved.
    """
    import mlflow.pyfunc

    try:
        return mlflow.pyfunc.load_model(folder).unwrap_python_model().net
    except Exception as error:
        raise WorkerError(f"{folder} must hold a Gluon model. Received: {type(error).__name__}: {error}") from error
