"""A training of a Keras model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from training.data.dataset import open_dataset
from training.engines.tensorflow_keras.rows import PreparedRows, Rows
from training.engines.tensorflow_keras.strategies.strategy import Strategy
from training.engines.tensorflow_keras.user_rows_opening import open_user_rows
from training.engines.training_job import TrainingJob as AnyTrainingJob
from training.engines.training_job import require_model
from training.model_file import load_model_file
from training.plan.batches import plan_batches
from training.run.rank import RankContext
from training.spec.pipeline import PipelineSpec

__all__ = ["TrainingJob", "read_training_job", "require_model"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingJob(AnyTrainingJob[Strategy]):
    """The work of one rank.

    Attributes:
        rows: Prepared ones, or those of `build_dataset`.
    """

    rows: Rows

    @property
    def holds_out(self) -> bool:
        """Whether rows are held out."""
        return self.rows.holds_out

    def fingerprint_rows(self) -> dict[str, Any]:
        """Return what a checkpoint must agree in that is about the rows."""
        return self.rows.fingerprint


def read_training_job(ctx: RankContext, strategy: Strategy) -> TrainingJob:
    """Open and check everything that the training needs. Where rows are the user's own, it waits for the other ranks.

    Raises:
        SpecError: The model file, its `build_dataset` or the batch size does not do.
        InfrastructureError: The prepared dataset is not there.
    """
    spec = PipelineSpec.model_validate(ctx.payload["spec"])
    file = load_model_file(require_model(spec), Path(ctx.payload["base_dir"]))
    rows: Rows
    if spec.builds_dataset:
        rows = open_user_rows(ctx, spec, strategy, file)
    else:
        dataset = open_dataset(Path(ctx.payload["dataset"]))
        batches = plan_batches(dataset.manifest.rows, spec.train.batch_size, strategy.replicas)
        rows = PreparedRows(dataset=dataset, batches=batches, seed=spec.train.seed, threads=ctx.threads)
    return TrainingJob(
        ctx=ctx,
        spec=spec,
        strategy=strategy,
        prepared=rows.dataset if isinstance(rows, PreparedRows) else None,
        rows=rows,
        batches=rows.batches,
        file=file,
        checkpoints=Path(ctx.payload["checkpoints"]),
        model_dir=Path(ctx.payload["model_dir"]),
        resume=bool(ctx.payload["resume"]),
        initial_model=Path(given) if (given := ctx.payload.get("initial_model")) else None,
    )
