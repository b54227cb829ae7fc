"""Where a training stands, and how it gets there again from a checkpoint."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from training.checkpoints.store import (
    Checkpoint,
    CheckpointMeta,
    check_fingerprint,
    clear_checkpoints,
    find_newest,
    find_step,
    write_checkpoint,
)
from training.engines.tensorflow_keras.agreement import share_from_chief
from training.engines.tensorflow_keras.state import Arrays, map_metrics, read_state, write_state
from training.engines.tensorflow_keras.training_job import TrainingJob
from training.engines.tensorflow_keras.user_callbacks import States
from training.errors import InfrastructureError
from training.run.atomic import sweep_unfinished


@dataclass(slots=True, kw_only=True)
class Progress:
    """Where a training stands; changes with each step.

    Attributes:
        step: Steps that were trained.
        metrics: Metrics of the last whole epoch.
        callbacks: What the user's callbacks remember.
        metric_state: Sums of the metrics of the epoch that was begun, to be set when `fit` has reset them; then empty.
    """

    step: int = 0
    metrics: dict[str, float] = field(default_factory=dict)
    callbacks: States = ()
    metric_state: Arrays = field(default_factory=dict)


def restore_progress(job: TrainingJob, model: Any) -> Progress:
    """Set `model` to the newest complete checkpoint, the same on every rank, or leave it as it was built.

    Raises:
        SpecError: The checkpoint is of another training.
        InfrastructureError: A rank cannot see the checkpoint that the chief has.
    """
    step = share_from_chief(job.strategy, _choose_step(job), is_chief=job.ctx.is_chief)
    if step is None:
        return Progress()
    checkpoint = find_step(job.checkpoints, step, job.log)
    if checkpoint is None:
        raise InfrastructureError(
            f"every rank must see the checkpoints. Received: none of step {step} in {job.checkpoints} on rank "
            f"{job.ctx.rank}. Put the home folder on storage that all hosts share."
        )
    check_fingerprint(checkpoint, job.fingerprint())  # on every rank, so that all end with the same words
    arrays = checkpoint.read()
    write_state(model, arrays, metrics=False)
    in_epoch = step % job.batches.steps_per_epoch
    job.log(f"going on after step {step} of {job.total_steps}, from {checkpoint.path}")
    return Progress(
        step=step,
        metrics=dict(checkpoint.meta.metrics),
        callbacks=checkpoint.meta.callbacks,
        metric_state=arrays if in_epoch else {},
    )


def save_progress(job: TrainingJob, model: Any, progress: Progress) -> Checkpoint | None:
    """Write a checkpoint on the chief. Every rank must call it: in mid-epoch, the metrics are added up over ranks.

    Raises:
        InfrastructureError: It could not be written; the earlier ones are whole.
    """
    epoch, in_epoch = divmod(progress.step, job.batches.steps_per_epoch)
    job.strategy.settle(model)
    if in_epoch or job.ctx.is_chief:
        arrays = map_metrics(read_state(model, with_metrics=bool(in_epoch)), job.strategy.pool)
    if not job.ctx.is_chief:
        return None
    meta = CheckpointMeta(
        step=progress.step,
        epoch=epoch,
        fingerprint=job.fingerprint(),
        metrics=progress.metrics,
        callbacks=progress.callbacks,
    )
    checkpoint = write_checkpoint(job.checkpoints, meta, arrays, keep=job.spec.train.checkpoint.keep)
    job.ctx.checkpoint(step=progress.step, path=checkpoint.path)
    return checkpoint


def _choose_step(job: TrainingJob) -> int | None:
    if not job.ctx.is_chief:
        return None
    if not job.resume:
        if count := clear_checkpoints(job.checkpoints):
            job.log(f"starting anew: {count} checkpoints of an earlier try were removed")
        return None
    sweep_unfinished(job.checkpoints)
    checkpoint = find_newest(job.checkpoints, job.log)
    return checkpoint.meta.step if checkpoint else None
