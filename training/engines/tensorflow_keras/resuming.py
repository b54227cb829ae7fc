"""A training of Keras as a checkpoint, and back."""

from __future__ import annotations

from typing import Any

from training.checkpoints.store import Checkpoint
from training.engines.progress import Progress, find_agreed_checkpoint, go_on_from, write_progress
from training.engines.tensorflow_keras.state import map_metrics, read_state, write_state
from training.engines.tensorflow_keras.training_job import TrainingJob

__all__ = ["Progress", "restore_progress", "save_progress"]


def restore_progress(job: TrainingJob, model: Any) -> Progress:
    """Set `model` to the newest complete checkpoint, the same on every rank, or leave it as it was built.

    Raises:
        SpecError: The checkpoint is of another training.
        InfrastructureError: A rank cannot see the checkpoint that the chief has.
    """
    checkpoint = find_agreed_checkpoint(job)
    if checkpoint is None:
        return Progress()
    arrays = checkpoint.read()
    write_state(model, arrays, metrics=False)
    return go_on_from(job, checkpoint, arrays)


def save_progress(job: TrainingJob, model: Any, progress: Progress) -> Checkpoint | None:
    """Write a checkpoint on the chief. Every rank must call it: in mid-epoch, the metrics are added up over ranks.

    Raises:
        InfrastructureError: It could not be written; the earlier ones are whole.
    """
    in_epoch = progress.step % job.batches.steps_per_epoch
    job.strategy.settle(model)
    if in_epoch or job.ctx.is_chief:
        arrays = map_metrics(read_state(model, with_metrics=bool(in_epoch)), job.strategy.pool)
    return write_progress(job, progress, arrays) if job.ctx.is_chief else None
