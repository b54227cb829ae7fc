"""What happens around the steps of `fit`: losses are watched, events told, epochs validated, checkpoints written."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from training.engines.tensorflow_keras.learning_rate import read_learning_rate
from training.engines.tensorflow_keras.observed_step import LOSSES
from training.engines.tensorflow_keras.resuming import Progress, save_progress
from training.engines.tensorflow_keras.state import map_metrics, write_state
from training.engines.tensorflow_keras.training_job import TrainingJob
from training.engines.tensorflow_keras.user_callbacks import describe_callbacks, restore_callbacks
from training.engines.tensorflow_keras.validating import Validator
from training.errors import DivergedError

#: The chief tells at most 20 steps a second, so that events never are what a training waits for; the others tell of
#: their life only.
_CHIEF_GAP_S = 0.05
_OTHERS_GAP_S = 1.0


class GangCallbacks(keras.callbacks.CallbackList):
    """Given to each `fit` of one training; the user's own callbacks see them as one.

    Args:
        job: The training.
        model: The model that is trained.
        progress: Where it stands; moved on here.
        validator: Evaluates at the end of an epoch.
        callbacks: The user's own.
    """

    def __init__(
        self,
        job: TrainingJob,
        model: Any,
        progress: Progress,
        validator: Validator,
        callbacks: Sequence[keras.callbacks.Callback] = (),
    ) -> None:
        epochs, steps = job.spec.train.epochs, job.batches.steps_per_epoch
        self._users = list(callbacks)
        super().__init__(list(callbacks), add_history=True, model=model, epochs=epochs, steps=steps, verbose=0)
        self.stopped = False
        self._job, self._progress, self._validator = job, progress, validator
        self._begun = False
        self._epoch_began = self._last_told = time.monotonic()

    def on_train_begin(self, logs: Any = None) -> None:
        """Begin once, though `fit` is called twice where an epoch was begun before a restart."""
        if not self._begun:
            super().on_train_begin(logs)
            restore_callbacks(self._users, self._progress.callbacks)
            self._begun = True

    def on_train_end(self, logs: Any = None) -> None:
        """Keep the end for `close`, but note whether somebody asked for it."""
        self.stopped = bool(self.model.stop_training)

    def close(self) -> None:
        """Tell the user's callbacks that the training has ended."""
        if self._begun:
            super().on_train_end(None)

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Set the metrics to where they were, in an epoch that was begun before a restart."""
        if self._progress.metric_state:
            state = map_metrics(self._progress.metric_state, self._job.strategy.portion)
            write_state(self.model, state, metrics=True)
            self._progress.metric_state = {}
        self._epoch_began = time.monotonic()
        super().on_epoch_begin(epoch, logs)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Count and watch a step, tell it, and write a checkpoint where one is due."""
        logs = logs or {}
        losses = np.asarray(logs.pop(LOSSES), dtype=np.float64).reshape(-1)
        self._progress.step += 1
        step = self._progress.step
        self._check_finite(losses)
        self._tell_step(float(losses.mean()))
        super().on_train_batch_end(batch, logs)
        if self._is_checkpoint(step):
            self._save()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Validate, tell the epoch, and write its checkpoint."""
        logs = {} if logs is None else logs
        self._job.strategy.settle(self.model)
        logs.update(self._job.strategy.unite_metrics(self.model))
        logs.update(self._validator.validate())
        metrics = {name: float(value) for name, value in logs.items()}
        for name in ("loss", "val_loss"):
            if not math.isfinite(metrics.get(name, 0.0)):
                raise DivergedError(
                    f"{name} must be a finite number. Received: {metrics[name]} after epoch {epoch + 1}.",
                    step=self._progress.step,
                )
        self._progress.metrics = {name: value for name, value in metrics.items() if math.isfinite(value)}
        self._tell_epoch(epoch + 1, sorted(metrics.keys() - self._progress.metrics.keys()))
        super().on_epoch_end(epoch, logs)
        self._save()

    @property
    def hear_steps(self) -> bool:
        """Whether somebody looks at the metrics of single steps."""
        return bool(self._users)

    def rest_after(self, steps: int) -> bool:
        """Whether a checkpoint is due `steps` steps after the last one that was heard of."""
        return self._is_checkpoint(self._progress.step + steps)

    def _is_checkpoint(self, step: int) -> bool:
        """Whether `step` ends with a checkpoint in mid-epoch."""
        every = self._job.spec.train.checkpoint.every_steps
        return bool(every and step % every == 0 and step % self._job.batches.steps_per_epoch)

    def _save(self) -> None:
        self._progress.callbacks = describe_callbacks(self._users)
        save_progress(self._job, self.model, self._progress)

    def _check_finite(self, losses: np.ndarray[Any, Any]) -> None:
        bad = np.flatnonzero(~np.isfinite(losses))
        if not len(bad):
            return
        step = self._progress.step
        epoch = (step - 1) // self._job.batches.steps_per_epoch + 1
        whose = ("replica" if self._job.ctx.world_size == 1 else "rank") + ("s" if len(bad) > 1 else "")
        raise DivergedError(
            f"the loss must be a finite number. Received: {losses[bad[0]]} at step {step} (epoch {epoch}) "
            f"on {whose} {', '.join(map(str, bad))}. Lower the learning rate, or look for extreme values in the data.",
            step=step,
        )

    def _tell_step(self, loss: float) -> None:
        """Tell first and last step of each epoch, and of the others as many as the gap allows."""
        ctx, step, per_epoch = self._job.ctx, self._progress.step, self._job.batches.steps_per_epoch
        now = time.monotonic()
        gap = _CHIEF_GAP_S if ctx.is_chief else _OTHERS_GAP_S
        if now - self._last_told < gap and not (ctx.is_chief and step % per_epoch in (0, 1)):
            return
        self._last_told = now
        metrics = {"loss": loss, "learning_rate": read_learning_rate(self.model)} if ctx.is_chief else {}
        ctx.step(step=step, epoch=(step - 1) // per_epoch + 1, metrics=metrics)

    def _tell_epoch(self, epoch: int, left_out: Sequence[str]) -> None:
        if not self._job.ctx.is_chief:
            return
        if left_out:
            self._job.log(f"not reported, since not finite: {', '.join(left_out)}")
        seconds = time.monotonic() - self._epoch_began
        epochs, step, metrics = self._job.spec.train.epochs, self._progress.step, self._progress.metrics
        self._job.ctx.epoch(epoch=epoch, epochs=epochs, step=step, metrics=metrics, seconds=seconds)
