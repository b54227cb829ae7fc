"""A placed block with its trainers and counts, as a checkpoint has it, and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from training.engines.mxnet_gluon.epoch_metrics import EpochMetrics, add_up_state
from training.engines.mxnet_gluon.gluon_model import GluonModel
from training.engines.mxnet_gluon.parameters import read_parameters, write_parameters
from training.engines.mxnet_gluon.training_job import TrainingJob
from training.engines.progress import Arrays, Progress, find_agreed_checkpoint, go_on_from, write_progress


@dataclass(frozen=True, slots=True, kw_only=True)
class Trainee:
    """What is being trained on this rank.

    Attributes:
        model: Its block is placed by the strategy.
        trainers: The strategy's.
        metrics: Of the epoch that is under way.
    """

    model: GluonModel
    trainers: Sequence[Any]
    metrics: EpochMetrics


def restore_progress(job: TrainingJob, trainee: Trainee) -> Progress:
    """Set the trainee to the newest complete checkpoint, the same on every rank, or leave it as it was built.

    Raises:
        SpecError: The checkpoint is of another training.
        InfrastructureError: A rank cannot see the checkpoint that the chief has.
    """
    checkpoint = find_agreed_checkpoint(job)
    if checkpoint is None:
        return Progress()
    arrays = checkpoint.read()
    net = trainee.model.net
    write_parameters(net, _choose(arrays, "param."))
    kept = {name: array for name, array in arrays.items() if not name.startswith(("param.", "metric."))}
    job.strategy.write_trainers(net, trainee.trainers, kept)
    return go_on_from(job, checkpoint, {name: array for name, array in arrays.items() if name.startswith("metric.")})


def save_progress(job: TrainingJob, trainee: Trainee, progress: Progress) -> None:
    """Write a checkpoint on the chief. Every rank must call it: averages and counts are brought together.

    Raises:
        InfrastructureError: It could not be written; the earlier ones are whole.
    """
    net = trainee.model.net
    job.strategy.settle(net)
    arrays = {f"param.{name}": array for name, array in read_parameters(net).items()}
    arrays |= job.strategy.read_trainers(net, trainee.trainers)
    if progress.step % job.batches.steps_per_epoch:
        arrays |= add_up_state(job.strategy, trainee.metrics.read_state())
    if job.ctx.is_chief:
        write_progress(job, progress, arrays)


def _choose(arrays: Arrays, prefix: str) -> Arrays:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
