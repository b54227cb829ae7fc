"""How a chief trains with workers that do not wait for one another: a counterpart of Keras' `fit`.

Each step is cut into as many shares as there are workers. Whichever worker is free computes the gradient of a share and
applies it, so that the weights depend on the order in which they finish. The rows of a step do not (ADR 3).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import keras
import numpy as np
import tensorflow as tf

from training.engines.tensorflow_keras.epoch_loop import train_epochs
from training.engines.tensorflow_keras.observed_step import LOSSES, TrainStep
from training.engines.tensorflow_keras.shims.asynchronous_updates import UpdateScope, count_at_once

if TYPE_CHECKING:
    from training.engines.tensorflow_keras.gang_callbacks import GangCallbacks

#: Steps that are handed out before the first of them is looked at: each worker has a share, and the next one waiting.
#: So the weights that an update is computed with lack at most the other updates of its step, and those of the steps
#: before and after it; and of a loss that is no number the chief hears when the step after it is at work.
STEPS_AHEAD = 2

#: Hands one share to a free worker, and returns what `fetch` waits for.
Schedule = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class _Step:
    batch: int
    results: list[Any]


class AsynchronousFit:
    """One call of a `fit` that hands out work.

    Args:
        model: The model that is trained; its variables are where all workers reach them.
        schedule: Hands out one share: the update of `make_update`.
        callbacks: Hear of the steps in their order.
    """

    def __init__(self, model: Any, schedule: Schedule, callbacks: GangCallbacks) -> None:
        self._model = model
        self._schedule = schedule
        self._callbacks = callbacks
        self._metrics = list(model.metrics_variables)
        self._sums: list[np.ndarray[Any, Any]] = []
        self._pending: deque[_Step] = deque()

    def run(self, batches: Iterator[Any], *, initial_epoch: int, epochs: int, steps_per_epoch: int) -> None:
        """Train the epochs as `Strategy.fit` says; `batches` gives the shares of each step."""
        train_epochs(
            self._model,
            self._callbacks,
            lambda epoch: self._train_epoch(epoch, batches, steps_per_epoch),
            initial_epoch=initial_epoch,
            epochs=epochs,
        )

    def _train_epoch(self, epoch: int, batches: Iterator[Any], steps: int) -> None:
        self._model.reset_metrics()
        self._callbacks.on_epoch_begin(epoch)
        # Reading also waits for what was written to the servers, which functions may overtake (shims/awaited_writes).
        self._sums = [np.asarray(variable.numpy(), np.float64) for variable in self._metrics]
        for batch in range(steps):
            self._callbacks.on_train_batch_begin(batch)
            self._pending.append(_Step(batch, [self._schedule(share) for share in self._read_shares(batches)]))
            is_last = batch == steps - 1
            self._finish_steps(rest=is_last or self._callbacks.rest_after(len(self._pending)))
            if self._model.stop_training:
                self._finish_steps(rest=True)
                break
        self._callbacks.on_epoch_end(epoch, self._read_logs())

    def _read_shares(self, batches: Iterator[Any]) -> Any:
        """Return the shares of the next step; where there are none, the steps before it are finished first."""
        try:
            return next(batches)
        except tf.errors.OpError:
            self._finish_steps(rest=True)
            raise

    def _finish_steps(self, *, rest: bool) -> None:
        """Wait for steps that were handed out: for all of them to `rest`, so that nothing changes any more."""
        while len(self._pending) > (0 if rest else STEPS_AHEAD - 1):
            self._finish_step(rest=rest)

    def _finish_step(self, *, rest: bool) -> None:
        step = self._pending.popleft()
        fetched = [result.fetch() for result in step.results]
        for _, added in fetched:
            self._sums = [total + one for total, one in zip(self._sums, added, strict=True)]
        logs: dict[str, Any] = self._read_logs() if self._callbacks.hear_steps else {}
        if rest and not self._pending:
            self._write_metrics()
        self._callbacks.on_train_batch_end(step.batch, {**logs, LOSSES: [loss for loss, _ in fetched]})

    def _read_logs(self) -> dict[str, float]:
        """Return the metrics of the epoch so far: exactly those of the steps that are finished."""
        with keras.StatelessScope(list(zip(self._metrics, self._sums, strict=True)), initialize_variables=False):
            return {name: float(value) for name, value in self._model.get_metrics_result().items()}

    def _write_metrics(self) -> None:
        for variable, total in zip(self._metrics, self._sums, strict=True):
            variable.assign(total)


def make_update(strategy: Any, model: Any, train_step: TrainStep) -> Any:
    """Return the function that a worker runs on a share: the model's own training step.

    It returns the loss of the share, and what the share adds to the metrics' variables.

    Args:
        strategy: The `tf.distribute.ParameterServerStrategy` that holds `model`.
        model: The model that is trained.
        train_step: What `keep_loss` gave.
    """
    metrics = list(model.metrics_variables)
    count_at_once(model.optimizer)

    def train_on_share(share: Any) -> Any:
        with UpdateScope(metrics) as scope:
            loss, _ = train_step(share)
            return loss, scope.read_metrics()

    return tf.function(lambda share: strategy.run(train_on_share, args=(share,)))
