"""Validation that equals one process's to the last digit: the chief evaluates all held-out rows, the others wait."""

from __future__ import annotations

from typing import Any

import keras

from training.engines.tensorflow_keras.keras_model import build_keras_model
from training.engines.tensorflow_keras.training_job import TrainingJob
from training.engines.validation import Pulse, validate_on_chief


class Validator:
    """Evaluates on the held-out rows.

    Where the strategy cannot evaluate on one rank alone, the chief keeps a second model, built outside of the
    strategy's scope by the same `build_model`, and copies the trained weights into it. So AUC and every other metric
    that is no mean are exact.

    Args:
        job: The training.
        model: The model that is trained.
    """

    def __init__(self, job: TrainingJob, model: Any) -> None:
        self._job = job
        self._trained = model
        self._own = model
        if job.ctx.is_chief and job.strategy.needs_own_evaluation_model():
            self._own = build_keras_model(job.file, job.dataset, job.spec.train.seed)

    def copy_trained(self) -> Any:
        """Return an ordinary model with the trained weights; on the chief."""
        if self._own is not self._trained:
            self._own.set_weights(self._trained.get_weights())
        return self._own

    def validate(self) -> dict[str, float]:
        """Return the metrics of the held-out rows, `val_` in front, the same on every rank; empty without such rows."""
        return validate_on_chief(self._job, lambda pulse: evaluate_rows(self.copy_trained(), self._job, pulse))


def evaluate_rows(model: Any, job: TrainingJob, pulse: Pulse) -> dict[str, float]:
    """Return the metrics of `model` on the validation rows of the job's dataset."""
    dataset, batch_size = job.dataset, job.spec.train.batch_size
    return evaluate_model(model, dataset.validation_x, dataset.validation_y, batch_size, _Beating(pulse))


def evaluate_model(
    model: Any, x: Any, y: Any, batch_size: int, *callbacks: keras.callbacks.Callback
) -> dict[str, float]:
    """Return the metrics of a compiled model on the given rows, all of them, in their order."""
    values = model.evaluate(x, y, batch_size=batch_size, verbose=0, return_dict=True, callbacks=list(callbacks))
    return {name: float(value) for name, value in values.items()}


class _Beating(keras.callbacks.Callback):
    """Says that the evaluation goes on."""

    def __init__(self, pulse: Pulse) -> None:
        super().__init__()
        self._pulse = pulse

    def on_test_batch_end(self, batch: int, logs: Any = None) -> None:
        self._pulse.beat()
