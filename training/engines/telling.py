"""What a rank says of its steps and epochs, and the watch over its losses, whatever framework computes them."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from training.engines.progress import Progress
from training.engines.training_job import TrainingJob
from training.errors import DivergedError

#: The chief tells at most 20 steps a second, so that events never are what a training waits for; the others tell of
#: their life only.
_CHIEF_GAP_S = 0.05
_OTHERS_GAP_S = 1.0


class Teller:
    """Tells the steps of one training.

    Args:
        job: The training.
        progress: Where it stands; moved on by others.
    """

    def __init__(self, job: TrainingJob[Any], progress: Progress) -> None:
        self._job, self._progress = job, progress
        self._epoch_began = self._last_told = time.monotonic()

    def begin_epoch(self) -> None:
        """Begin to count the seconds of an epoch."""
        self._epoch_began = time.monotonic()

    def check_losses(self, losses: np.ndarray[Any, Any], first: int = 0) -> None:
        """Check the losses of a step, one a replica from the number `first` on; with 0, every rank sees the same.

        Raises:
            DivergedError: One is no finite number.
        """
        bad = np.flatnonzero(~np.isfinite(losses))
        if not len(bad):
            return
        step = self._progress.step
        epoch = (step - 1) // self._job.batches.steps_per_epoch + 1
        where = ", ".join(map(str, bad + first))
        whose = ("replica" if self._job.ctx.world_size == 1 else "rank") + ("s" if len(bad) > 1 else "")
        raise DivergedError(
            f"the loss must be a finite number. Received: {losses[bad[0]]} at step {step} (epoch {epoch}) "
            f"on {whose} {where}. Lower the learning rate, or look for extreme values in the data.",
            step=step,
        )

    def tell_step(self, metrics: Mapping[str, float]) -> None:
        """Tell first and last step of each epoch, and of the others as many as the gap allows."""
        ctx, step, per_epoch = self._job.ctx, self._progress.step, self._job.batches.steps_per_epoch
        ctx.reached = step
        now = time.monotonic()
        gap = _CHIEF_GAP_S if ctx.is_chief else _OTHERS_GAP_S
        if now - self._last_told < gap and not (ctx.is_chief and step % per_epoch in (0, 1)):
            return
        self._last_told = now
        told = dict(metrics) if ctx.is_chief else {}
        ctx.step(step=step, epoch=(step - 1) // per_epoch + 1, metrics=told)

    def end_epoch(self, epoch: int, metrics: Mapping[str, float]) -> None:
        """Keep the metrics of an epoch (from 0) that are finite as those of the progress, and tell them.

        Raises:
            DivergedError: A loss is no finite number.
        """
        for name in ("loss", "val_loss"):
            if not math.isfinite(metrics.get(name, 0.0)):
                raise DivergedError(
                    f"{name} must be a finite number. Received: {metrics[name]} after epoch {epoch + 1}.",
                    step=self._progress.step,
                )
        self._progress.metrics = {name: value for name, value in metrics.items() if math.isfinite(value)}
        if not self._job.ctx.is_chief:
            return
        left_out = sorted(metrics.keys() - self._progress.metrics.keys())
        if left_out:
            self._job.log(f"not reported, since not finite: {', '.join(left_out)}")
        seconds = time.monotonic() - self._epoch_began
        epochs, step, kept = self._job.spec.train.epochs, self._progress.step, self._progress.metrics
        self._job.ctx.epoch(epoch=epoch + 1, epochs=epochs, step=step, metrics=kept, seconds=seconds)

    def is_checkpoint(self, step: int) -> bool:
        """Whether `step` ends with a checkpoint in mid-epoch."""
        every = self._job.spec.train.checkpoint.every_steps
        return bool(every and step % every == 0 and step % self._job.batches.steps_per_epoch)
