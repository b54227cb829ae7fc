"""How a chief trains a model in stages: a counterpart of Keras' `fit`, one call of the pipelined step after another."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from training.engines.tensorflow_keras.epoch_loop import train_epochs
from training.engines.tensorflow_keras.observed_step import LOSSES
from training.engines.tensorflow_keras.pipelining.step_times import StepTimes
from training.engines.tensorflow_keras.shims.awaited_writes import await_writes

if TYPE_CHECKING:
    from training.engines.tensorflow_keras.gang_callbacks import GangCallbacks


class PipelinedFit:
    """One call of a `fit`.

    Args:
        model: The whole model, its variables on the devices of their stages.
        function: What `PipelinedStep.make_function` returned.
        times: Takes how long the works of each step took.
        callbacks: Hear of the steps.
        report: Told, at the end of each epoch, the number of steps trained.
    """

    def __init__(
        self,
        model: Any,
        function: Any,
        times: StepTimes,
        callbacks: GangCallbacks,
        report: Callable[[int], None],
    ) -> None:
        self._model = model
        self._function = function
        self._times = times
        self._callbacks = callbacks
        self._report = report

    def run(self, batches: Iterator[Sequence[Any]], *, initial_epoch: int, epochs: int, steps_per_epoch: int) -> None:
        """Train the epochs as `Strategy.fit` says; `batches` gives the rows of each step."""
        train_epochs(
            self._model,
            self._callbacks,
            lambda epoch: self._train_epoch(epoch, batches, steps_per_epoch),
            initial_epoch=initial_epoch,
            epochs=epochs,
        )

    def _train_epoch(self, epoch: int, batches: Iterator[Sequence[Any]], steps: int) -> None:
        self._model.reset_metrics()
        self._callbacks.on_epoch_begin(epoch)
        logs: dict[str, float] = {}
        for batch in range(steps):
            self._callbacks.on_train_batch_begin(batch)
            rows = next(batches)
            await_writes()  # of metrics that were reset, or by callbacks of the user's
            began = time.perf_counter()
            loss, found, marks = self._function(*rows)
            logs = {name: float(value) for name, value in found.items()}
            self._times.add(marks, time.perf_counter() - began)
            self._callbacks.on_train_batch_end(batch, {**logs, LOSSES: [float(loss)]})
            if self._model.stop_training:
                break
        self._callbacks.on_epoch_end(epoch, logs)
        self._report(self._callbacks.step)
