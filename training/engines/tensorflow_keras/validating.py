"""Validation that equals one process's to the last digit: the chief evaluates all held-out rows, the others wait."""

from __future__ import annotations

import time
from typing import Any

import keras

from training.engines.tensorflow_keras.agreement import share_from_chief
from training.engines.tensorflow_keras.keras_model import build_keras_model
from training.engines.tensorflow_keras.training_job import TrainingJob

_PULSE_S = 5.0

Metrics = dict[str, float]


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
        if not self._job.dataset.manifest.validation_rows:
            return {}
        if self._job.ctx.is_chief:
            metrics = evaluate_rows(self.copy_trained(), self._job, on_pulse=lambda: self._share(None))
            named = {f"val_{name}": value for name, value in metrics.items()}
            self._share(named)
            return named
        while True:
            self._job.ctx.heartbeat("waiting for the validation by rank 0")
            shared = self._share(None)
            if shared is not None:
                return shared

    def _share(self, metrics: Metrics | None) -> Metrics | None:
        shared: Metrics | None = share_from_chief(self._job.strategy, metrics, is_chief=self._job.ctx.is_chief)
        return shared


def evaluate_rows(model: Any, job: TrainingJob, on_pulse: Any) -> dict[str, float]:
    """Return the metrics of `model` on the validation rows of the job's dataset."""
    pulse = _Pulse(job, on_pulse)
    return evaluate_model(model, job.dataset.validation_x, job.dataset.validation_y, job.spec.train.batch_size, pulse)


def evaluate_model(
    model: Any, x: Any, y: Any, batch_size: int, *callbacks: keras.callbacks.Callback
) -> dict[str, float]:
    """Return the metrics of a compiled model on the given rows, all of them, in their order."""
    values = model.evaluate(x, y, batch_size=batch_size, verbose=0, return_dict=True, callbacks=list(callbacks))
    return {name: float(value) for name, value in values.items()}


class _Pulse(keras.callbacks.Callback):
    """Says every few seconds that the evaluation goes on, to the supervisor and to the ranks that wait."""

    def __init__(self, job: TrainingJob, on_pulse: Any) -> None:
        super().__init__()
        self._job = job
        self._on_pulse = on_pulse
        self._last = time.monotonic()

    def on_test_batch_end(self, batch: int, logs: Any = None) -> None:
        if time.monotonic() - self._last > _PULSE_S:
            self._last = time.monotonic()
            self._job.ctx.heartbeat("validating")
            self._on_pulse()
