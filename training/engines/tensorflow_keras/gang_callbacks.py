"""What happens around the steps of `fit`: losses are watched, events told, epochs validated, checkpoints written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from training.engines.telling import Teller
from training.engines.tensorflow_keras.learning_rate import read_learning_rate
from training.engines.tensorflow_keras.observed_step import LOSSES
from training.engines.tensorflow_keras.resuming import Progress, save_progress
from training.engines.tensorflow_keras.state import map_metrics, write_state
from training.engines.tensorflow_keras.training_job import TrainingJob
from training.engines.tensorflow_keras.user_callbacks import describe_callbacks, restore_callbacks
from training.engines.tensorflow_keras.validating import Validator


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
        self._teller = Teller(job, progress)

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
        self._teller.begin_epoch()
        super().on_epoch_begin(epoch, logs)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Count and watch a step, tell it, and write a checkpoint where one is due."""
        logs = logs or {}
        losses = np.asarray(logs.pop(LOSSES), dtype=np.float64).reshape(-1)
        self._progress.step += 1
        step = self._progress.step
        self._teller.check_losses(losses)
        self._teller.tell_step({"loss": float(losses.mean()), "learning_rate": read_learning_rate(self.model)})
        super().on_train_batch_end(batch, logs)
        if self._teller.is_checkpoint(step):
            self._save()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Validate, tell the epoch, and write its checkpoint."""
        logs = {} if logs is None else logs
        self._job.strategy.settle(self.model)
        logs.update(self._job.strategy.unite_metrics(self.model))
        logs.update(self._validator.validate())
        self._teller.end_epoch(epoch, {name: float(value) for name, value in logs.items()})
        super().on_epoch_end(epoch, logs)
        self._save()

    @property
    def step(self) -> int:
        """Steps that are trained, earlier attempts included."""
        return self._progress.step

    @property
    def hear_steps(self) -> bool:
        """Whether somebody looks at the metrics of single steps."""
        return bool(self._users)

    def rest_after(self, steps: int) -> bool:
        """Whether a checkpoint is due `steps` steps after the last one that was heard of."""
        return self._teller.is_checkpoint(self._progress.step + steps)

    def _save(self) -> None:
        self._progress.callbacks = describe_callbacks(self._users)
        save_progress(self._job, self.model, self._progress)
