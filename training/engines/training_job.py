"""What stays the same through the training of a model file, as one value; the framework is the strategy's matter."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from training.data.dataset import Dataset, open_dataset
from training.engines.agreement import AddsUp
from training.errors import spec_error
from training.model_file import ModelFile, load_model_file
from training.plan.batches import BatchPlan, plan_batches
from training.run.rank import RankContext
from training.spec.pipeline import ModelSpec, PipelineSpec


class _CutsBatches(AddsUp, Protocol):
    replicas: int


StrategyT = TypeVar("StrategyT", bound=_CutsBatches)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingJob(Generic[StrategyT]):
    """The work of one rank.

    Attributes:
        ctx: Who this rank is, and how it talks.
        spec: The pipeline.
        strategy: How work is spread.
        prepared: The prepared rows; None where the model file has its own.
        batches: How they become steps.
        file: The user's model file.
        checkpoints: Folder of the run's checkpoints.
        model_dir: Where the trained model goes.
        initial_model: Where the weights to start from are; None for those that the model is built with.
        resume: Whether to go on from the newest checkpoint.
    """

    ctx: RankContext
    spec: PipelineSpec
    strategy: StrategyT
    prepared: Dataset | None
    batches: BatchPlan
    file: ModelFile
    checkpoints: Path
    model_dir: Path
    resume: bool
    initial_model: Path | None = None

    @property
    def dataset(self) -> Dataset:
        """The prepared rows.

        Raises:
            SpecError: There are none.
        """
        if self.prepared is None:
            raise spec_error("data.source", f"must be prepared for the engine {self.spec.train.engine}.")
        return self.prepared

    @property
    def total_steps(self) -> int:
        """Steps of the whole training."""
        return self.batches.steps_per_epoch * self.spec.train.epochs

    def fingerprint(self) -> dict[str, Any]:
        """Return what a checkpoint must agree in to be gone on from. The number of ranks is not in it."""
        model = require_model(self.spec)
        tuning = {"model.initialize_from": model.initialize_from, "model.freeze": list(model.freeze) or None}
        return {name: value for name, value in tuning.items() if value} | {
            "model.entrypoint": self.file.entrypoint,
            "model.params": self.file.params,
            **self.fingerprint_rows(),
            "train.seed": self.spec.train.seed,
            "train.batch_size": self.spec.train.batch_size,
        }

    @property
    def holds_out(self) -> bool:
        """Whether rows are held out; the same on every rank."""
        return self.dataset.manifest.validation_rows > 0

    def fingerprint_rows(self) -> dict[str, Any]:
        """Return that part of it which is about the rows."""
        return {"data": self.dataset.manifest.fingerprint}

    def log(self, line: str) -> None:
        """Print a line, on the chief only: all ranks would say the same."""
        if self.ctx.is_chief:
            print(line, flush=True)


def read_training_job(ctx: RankContext, strategy: StrategyT) -> TrainingJob[StrategyT]:
    """Open and check everything that the training needs.

    Raises:
        SpecError: The model file or the batch size does not do.
        InfrastructureError: The prepared dataset is not there.
    """
    spec = PipelineSpec.model_validate(ctx.payload["spec"])
    dataset = open_dataset(Path(ctx.payload["dataset"]))
    return TrainingJob(
        ctx=ctx,
        spec=spec,
        strategy=strategy,
        prepared=dataset,
        batches=plan_batches(dataset.manifest.rows, spec.train.batch_size, strategy.replicas),
        file=load_model_file(require_model(spec), Path(ctx.payload["base_dir"])),
        checkpoints=Path(ctx.payload["checkpoints"]),
        model_dir=Path(ctx.payload["model_dir"]),
        resume=bool(ctx.payload["resume"]),
        initial_model=Path(given) if (given := ctx.payload.get("initial_model")) else None,
    )


def require_model(spec: PipelineSpec) -> ModelSpec:
    """Return the block `model`.

    Raises:
        SpecError: There is none.
    """
    if spec.model is None:
        raise spec_error("model", f"must be given for the engine {spec.train.engine}. Received: none.")
    return spec.model
