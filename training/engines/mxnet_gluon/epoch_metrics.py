"""The loss and the metrics of an epoch, as sums that can be saved, added up over ranks, and set again."""

from __future__ import annotations

import numbers
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from training.engines.agreement import AddsUp
from training.engines.mxnet_gluon.parameters import Arrays
from training.engines.mxnet_gluon.row_metrics import recompute, update_metric
from training.errors import spec_error

_LOSS, _ROWS = "metric.loss", "metric.rows"
#: A number that no metric counts with: what `reset` leaves alone keeps it.
_MARK = -7.25e77
_OTHER = object()


class EpochMetrics:
    """Counts what the rows of an epoch say.

    Args:
        metrics: MXNet's, told apart by their place.
    """

    def __init__(self, metrics: Sequence[Any]) -> None:
        self._metrics = list(metrics)
        self.reset()
        self._counters = [list(find_counters(metric)) for metric in self._metrics]

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
            update_metric(metric, labels, outputs)

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
            state[place] = np.array(getattr(owner, name), dtype=np.float64)
        return state

    def write_state(self, state: Arrays) -> None:
        """Set the sums; what `state` does not have stays."""
        self._loss = float(state.get(_LOSS, self._loss))
        self._rows = float(state.get(_ROWS, self._rows))
        for place, owner, name in self._iter_counters():
            if place in state:
                setattr(owner, name, _like(getattr(owner, name), state[place]))

    def unite(self, strategy: AddsUp) -> None:
        """Make the sums those of all ranks. Every rank must call it."""
        self.write_state(add_up_state(strategy, self.read_state()))
        for metric in self._metrics:
            recompute(metric)

    def _iter_counters(self) -> Iterator[tuple[str, Any, str]]:
        for number, counters in enumerate(self._counters):
            for depth, (owner, name) in enumerate(counters):
                yield f"metric.{number}.{depth}.{name}", owner, name


def _like(before: Any, sums: np.ndarray[Any, Any]) -> Any:
    """Return a number, or a table of the type of the one before."""
    if isinstance(before, np.ndarray):
        return np.array(sums, dtype=before.dtype)
    value = float(sums)
    return int(value) if value.is_integer() else value


def add_up_state(strategy: AddsUp, state: Arrays) -> Arrays:
    """Return the sums of all ranks, in one collective, or two where there are tables.

    Raises:
        SpecError: Ranks have tables of different sizes.
    """
    numbers_of_all = np.concatenate([array.reshape(-1) for array in state.values()]).astype(np.float64)
    if len(numbers_of_all) > len(state):
        _check_same_size(strategy, len(numbers_of_all))
    total = strategy.add_up(numbers_of_all)
    ends = np.cumsum([array.size for array in state.values()])
    parts = np.split(total, ends[:-1])
    return {name: part.reshape(array.shape) for (name, array), part in zip(state.items(), parts, strict=True)}


def _check_same_size(strategy: AddsUp, size: int) -> None:
    """Check that all ranks have as many numbers, by their variance: to add up is all that every strategy can do.

    Raises:
        SpecError: They have not; on all ranks.
    """
    ranks, total, squares = strategy.add_up(np.array([1.0, size, size**2]))
    if ranks * squares != total**2:
        raise spec_error(
            "model.entrypoint",
            "the tables that metrics keep must have the same sizes on all ranks. Received: different ones.",
            "Have `reset` make each as large as it can become.",
        )


def find_counters(metric: Any) -> Iterator[tuple[Any, str]]:
    """Yield the numbers and tables that a metric counts in, as owner and attribute: those that its `reset` sets."""
    return ((owner, name) for owner, name in _iter_reset(metric) if _mark(getattr(owner, name)) is not None)


def describe_uncounted(metrics: Sequence[Any]) -> Iterator[str]:
    """Yield what is to be said of metrics that keep what cannot be added up, such as lists of all outputs."""
    for metric in metrics:
        names = ", ".join(name for name, _ in metric.get_name_value())
        kept = ", ".join(name for owner, name in _iter_reset(metric) if _mark(getattr(owner, name)) is None)
        if kept:
            yield (
                f"metric {names} keeps {kept}, neither a number nor a NumPy array of some size, which ranks could add "
                "up: of an epoch, it tells of the chief's rows alone, and of those since the training was last started"
            )


def _iter_reset(metric: Any) -> Iterator[tuple[Any, str]]:
    """Yield what `reset` sets.

    One after another: `reset` may go by the others, which are settings (`np.zeros((self.classes, self.classes))`).
    """
    owners = [metric, *(value for value in vars(metric).values() if hasattr(value, "__dict__") and not callable(value))]
    for owner in owners:
        for name in list(vars(owner)):
            if _is_reset(metric, owner, name):
                yield owner, name


def _is_reset(metric: Any, owner: Any, name: str) -> bool:
    """Return whether `reset` sets an attribute. What it fails with, or leaves as it was, is a setting."""
    before = getattr(owner, name)
    mark = _mark(before)
    mark = _OTHER if mark is None else mark
    setattr(owner, name, mark)
    try:
        metric.reset()
    except Exception:  # noqa: BLE001 - whatever the code of a metric raises that was given a number without sense
        return False
    else:
        is_same = vars(owner).get(name) is mark
        return not is_same or (isinstance(mark, np.ndarray) and bool((mark != _MARK).any()))
    finally:
        setattr(owner, name, before)


def _mark(value: object) -> Any:
    """Return what shows whether a number or a table was set anew; None for what is neither."""
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        return _MARK
    if isinstance(value, np.ndarray) and value.size and value.dtype.kind in "iuf":
        return np.full(value.shape, _MARK)
    return None
