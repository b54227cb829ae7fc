"""Where a training stands, and the checkpoint that it goes on from: one step, agreed among all ranks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from training.checkpoints.store import (
    Checkpoint,
    CheckpointMeta,
    check_fingerprint,
    clear_checkpoints,
    find_newest,
    find_step,
    write_checkpoint,
)
from training.engines.agreement import share_from_chief
from training.engines.training_job import TrainingJob
from training.errors import InfrastructureError
from training.run.atomic import sweep_unfinished

Arrays = dict[str, NDArray[Any]]
States = tuple[Mapping[str, Any], ...]


@dataclass(slots=True, kw_only=True)
class Progress:
    """Where a training stands; changes with each step.

    Attributes:
        step: Steps that were trained.
        metrics: Metrics of the last whole epoch.
        callbacks: What the user's callbacks remember.
        metric_state: Sums of the metrics of the epoch that was begun, to be set when they have been reset; then empty.
    """

    step: int = 0
    metrics: dict[str, float] = field(default_factory=dict)
    callbacks: States = ()
    metric_state: Arrays = field(default_factory=dict)


def find_agreed_checkpoint(job: TrainingJob[Any]) -> Checkpoint | None:
    """Return the newest complete checkpoint that the chief sees, the same on every rank; None to begin anew.

    Raises:
        SpecError: The checkpoint is of another training.
        InfrastructureError: A rank cannot see the checkpoint that the chief has.
    """
    step = share_from_chief(job.strategy, _choose_step(job), is_chief=job.ctx.is_chief)
    if step is None:
        return None
    checkpoint = find_step(job.checkpoints, step, job.log)
    if checkpoint is None:
        raise InfrastructureError(
            f"every rank must see the checkpoints. Received: none of step {step} in {job.checkpoints} on rank "
            f"{job.ctx.rank}. Put the home folder on storage that all hosts share."
        )
    check_fingerprint(checkpoint, job.fingerprint())  # on every rank, so that all end with the same words
    return checkpoint


def go_on_from(job: TrainingJob[Any], checkpoint: Checkpoint, arrays: Arrays) -> Progress:
    """Return the progress that a checkpoint is of, and say so."""
    step = checkpoint.meta.step
    job.log(f"going on after step {step} of {job.total_steps}, from {checkpoint.path}")
    return Progress(
        step=step,
        metrics=dict(checkpoint.meta.metrics),
        callbacks=checkpoint.meta.callbacks,
        metric_state=arrays if step % job.batches.steps_per_epoch else {},
    )


def write_progress(job: TrainingJob[Any], progress: Progress, arrays: Arrays) -> Checkpoint:
    """Write a checkpoint and tell it; for the chief.

    Raises:
        InfrastructureError: It could not be written; the earlier ones are whole.
    """
    meta = CheckpointMeta(
        step=progress.step,
        epoch=progress.step // job.batches.steps_per_epoch,
        fingerprint=job.fingerprint(),
        metrics=progress.metrics,
        callbacks=tuple(dict(state) for state in progress.callbacks),
    )
    checkpoint = write_checkpoint(job.checkpoints, meta, arrays, keep=job.spec.train.checkpoint.keep)
    job.ctx.checkpoint(step=progress.step, path=checkpoint.path)
    return checkpoint


def _choose_step(job: TrainingJob[Any]) -> int | None:
    if not job.ctx.is_chief:
        return None
    if not job.resume:
        if count := clear_checkpoints(job.checkpoints):
            job.log(f"starting anew: {count} checkpoints of an earlier try were removed")
        return None
    sweep_unfinished(job.checkpoints)
    checkpoint = find_newest(job.checkpoints, job.log)
    return checkpoint.meta.step if checkpoint else None
