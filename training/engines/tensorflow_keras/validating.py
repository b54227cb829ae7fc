"""Validation that equals one process's to the last digit: the chief evaluates all held-out rows, the others wait."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from training.engines.tensorflow_keras.keras_model import build_keras_model
from training.engines.tensorflow_keras.rows import HeldOutRows
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
            self._own = build_keras_model(job.file, job.rows.example, job.spec.train.seed)
        self._evaluation = Evaluation(self._own)

    def copy_trained(self) -> Any:
        """Return an ordinary model with the trained weights; on the chief."""
        if self._own is not self._trained:
            self._own.set_weights(self._trained.get_weights())
        return self._own

    def validate(self) -> dict[str, float]:
        """Return the metrics of the held-out rows, `val_` in front, the same on every rank; empty without such rows."""
        return validate_on_chief(self._job, self._evaluate)

    def _evaluate(self, pulse: Pulse) -> dict[str, float]:
        self.copy_trained()
        rows, batch_size = self._job.rows.read_held_out(), self._job.spec.train.batch_size
        return self._evaluation.run(rows, batch_size, _Beating(pulse))


class Evaluation:
    """Evaluates one compiled model, as often as it is asked to.

    Args:
        model: A model that is not distributed.
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        self._step = tf.function(model.test_step)

    def run(self, rows: HeldOutRows, batch_size: int, *callbacks: keras.callbacks.Callback) -> dict[str, float]:
        """Return the metrics of the given rows, all of them, in their order."""
        if rows.y is None:
            values = self._evaluate_batches(rows.x, callbacks)
        else:
            values = self._model.evaluate(
                rows.x, rows.y, batch_size=batch_size, verbose=0, return_dict=True, callbacks=list(callbacks)
            )
        return {name: float(value) for name, value in values.items()}

    def _evaluate_batches(self, batches: Any, callbacks: Sequence[keras.callbacks.Callback]) -> Any:
        """Return the metrics of a `tf.data.Dataset`.

        Keras' own `evaluate` weighs the loss of each of several outputs by rows only where a batch's shape tells them,
        and counts the step that finds the data at its end. Here each batch is read first, so that its shape is known.
        """
        self._model.reset_metrics()
        for number, batch in enumerate(batches):
            self._step(batch)
            for callback in callbacks:
                callback.on_test_batch_end(number)
        return self._model.get_metrics_result()


class _Beating(keras.callbacks.Callback):
    """Says that the evaluation goes on."""

    def __init__(self, pulse: Pulse) -> None:
        super().__init__()
        self._pulse = pulse

    def on_test_batch_end(self, batch: int, logs: Any = None) -> None:
        self._pulse.beat()
