"""The loss and the metrics of an epoch, as sums that can be saved, added up over ranks, and set again."""

from __future__ import annotations

import numbers
from collections.abc import Iterator, Sequence
from typing import Any

import mxnet as mx
import numpy as np

from training.engines.agreement import AddsUp
from training.engines.mxnet_gluon.parameters import Arrays

_LOSS, _ROWS = "metric.loss", "metric.rows"
#: A number that no metric counts with: what `reset` leaves alone keeps it.
_MARK = -7.25e77


class EpochMetrics:
    """Counts what the rows of an epoch say.

    Args:
        metrics: MXNet's, told apart by their place.
    """

    def __init__(self, metrics: Sequence[Any]) -> None:
        self._metrics = list(metrics)
        self._counters = [list(find_counters(metric)) for metric in self._metrics]
        self.reset()

    def reset(self) -> None:
        """Begin an epoch."""
        self._loss, self._rows = 0.0, 0.0
        for metric in self._metrics:
            metric.reset()

    def add(self, losses: np.ndarray[Any, Any], labels: Any, outputs: Any) -> None:
        """Count rows: the loss of each, shape (rows,), labels and outputs."""
        self._loss += float(np.sum(losses, dtype=np.float64))
        self._rows += len(losses)
        for metric in self._metrics:
            count_rows(metric, labels, outputs)

    def read(self) -> dict[str, float]:
        """Return the values by name, over the rows that were counted."""
        values = {"loss": self._loss / self._rows if self._rows else float("nan")}
        for metric in self._metrics:
            values |= {name: float(value) for name, value in metric.get_name_value()}
        return values

    def read_state(self) -> Arrays:
        """Return the sums."""
        state = {_LOSS: np.array(self._loss), _ROWS: np.array(self._rows)}
        for place, owner, name in self._iter_counters():
            state[place] = np.array(float(getattr(owner, name)))
        return state

    def write_state(self, state: Arrays) -> None:
        """Set the sums; what `state` does not have stays."""
        self._loss = float(state.get(_LOSS, self._loss))
        self._rows = float(state.get(_ROWS, self._rows))
        for place, owner, name in self._iter_counters():
            if place in state:
                value = float(state[place])
                setattr(owner, name, int(value) if value.is_integer() else value)

    def unite(self, strategy: AddsUp) -> None:
        """Make the sums those of all ranks. Every rank must call it."""
        self.write_state(add_up_state(strategy, self.read_state()))
        for metric in self._metrics:
            recompute(metric)

    def _iter_counters(self) -> Iterator[tuple[str, Any, str]]:
        for number, counters in enumerate(self._counters):
            for depth, (owner, name) in enumerate(counters):
                yield f"metric.{number}.{depth}.{name}", owner, name


def count_rows(metric: Any, labels: Any, outputs: Any) -> None:
    """Have a metric count rows. Each of a batch counts alike: MXNet's `MAE` and `MSE` would count a batch as one.

    The last batch of the held-out rows is smaller than the others.
    """
    if type(metric) not in (mx.metric.MAE, mx.metric.MSE):
        metric.update([labels], [outputs])
        return
    total, rows = metric.sum_metric, metric.num_inst
    metric.update([labels], [outputs])
    metric.sum_metric = total + len(labels) * (metric.sum_metric - total)
    metric.num_inst = rows + len(labels)


def add_up_state(strategy: AddsUp, state: Arrays) -> Arrays:
    """Return the sums of all ranks, in one collective."""
    total = strategy.add_up(np.array([float(array) for array in state.values()]))
    return {name: np.array(value) for name, value in zip(state, total, strict=True)}


def recompute(metric: Any) -> None:
    """Have a metric that is no mean say what its counts say, which were set from outside: F1 and MCC over all rows.

    They compute it when they are told of rows; here they are told of none.
    """
    average = getattr(metric, "average", getattr(metric, "_average", None))
    if isinstance(metric, mx.metric.F1 | mx.metric.MCC) and average == "micro":
        metric.update([], [])


def find_counters(metric: Any) -> Iterator[tuple[Any, str]]:
    """Yield the numbers that a metric counts in, as owner and attribute: those that its `reset` sets.

    One after another: `reset` may go by the others, which are settings (`np.zeros((self.classes, self.classes))`).
    """
    owners = [metric, *(value for value in vars(metric).values() if hasattr(value, "__dict__") and not callable(value))]
    for owner in owners:
        for name in [name for name, value in vars(owner).items() if _is_number(value)]:
            if _is_reset(metric, owner, name):
                yield owner, name


def _is_reset(metric: Any, owner: Any, name: str) -> bool:
    """Return whether `reset` sets a number. What it fails with, or leaves as it was, is a setting."""
    before = getattr(owner, name)
    setattr(owner, name, _MARK)
    try:
        metric.reset()
    except Exception:  # noqa: BLE001 - whatever the code of a metric raises that was given a number without sense
        return False
    else:
        return bool(getattr(owner, name) != _MARK)
    finally:
        setattr(owner, name, before)


def _is_number(value: object) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)
