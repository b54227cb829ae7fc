"""Metrics of MXNet that are means of what batches have, as metrics of rows: counts that add up over batches and ranks.

What is reported does not depend on how rows are cut into batches then, nor on a smaller last one.
"""

from __future__ import annotations

import math
from typing import Any

import mxnet as mx
import numpy as np

#: What is left of a difference of 64-bit sums that are equal, relative to them, at most.
_ROUNDING = 1e-12


def count_by_rows(metric: Any) -> Any:
    """Return what counts the rows that a metric of MXNet's takes batches of; any other as it is."""
    update = type(metric).update
    for base, name in ((mx.metric.F1, "average"), (mx.metric.MCC, "_average")):
        if update is base.update:
            setattr(metric, name, "micro")
    if update is mx.metric.CustomMetric.update:
        metric._feval = _weigh(metric._feval)
    own = {mx.metric.RMSE: RootMeanSquare, mx.metric.PearsonCorrelation: Correlation, mx.metric.PCC: Table}
    if type(metric) not in own:
        return metric
    return own[type(metric)](name=metric.name, output_names=metric.output_names, label_names=metric.label_names)


def update_metric(metric: Any, labels: Any, outputs: Any) -> None:
    """Have a metric count rows. Each of a batch counts alike: MXNet's `MAE` and `MSE` would count a batch as one."""
    if type(metric).update not in (mx.metric.MAE.update, mx.metric.MSE.update):
        metric.update([labels], [outputs])
        return
    total, rows = metric.sum_metric, metric.num_inst
    metric.sum_metric = 0.0
    metric.update([labels], [outputs])
    metric.sum_metric = total + len(labels) * metric.sum_metric
    metric.num_inst = rows + len(labels)


def recompute(metric: Any) -> None:
    """Have F1 and MCC say what their counts say, which were set from outside.

    They compute it when they are told of rows; here they are told of none.
    """
    if type(metric).update in (mx.metric.F1.update, mx.metric.MCC.update):
        metric.update([], [])


class RootMeanSquare(mx.metric.MSE):  # type: ignore[misc]  # MXNet ships no types
    """The root of the mean of squared differences; MXNet's `RMSE` is a mean of the roots of batches."""

    def get(self) -> tuple[str, float]:
        """Return name and value."""
        name, mean = super().get()
        return name, math.sqrt(mean)


class Table(mx.metric.PCC):  # type: ignore[misc]  # MXNet ships no types
    """`PCC` with a table of all classes from the first rows on: those of all ranks have one size."""

    def update(self, labels: Any, preds: Any) -> None:
        """Count rows by label and by what was said of them."""
        for label, output in zip(labels, preds, strict=True):
            if output.shape != label.shape:
                self._grow(max(0, output.shape[1] - self.k))
        super().update(labels, preds)

    @property
    def k(self) -> int:
        """The size of the table."""
        return len(self.lcm) if hasattr(self, "lcm") else 2

    @k.setter
    def k(self, size: int) -> None:
        pass


class Correlation(mx.metric.EvalMetric):  # type: ignore[misc]  # MXNet ships no types
    """Pearson's correlation of labels and outputs, from sums: MXNet's is a mean over batches, or none that adds up."""

    def reset(self) -> None:
        """Begin an epoch."""
        super().reset()
        self.sums = np.zeros(6)

    def update(self, labels: Any, preds: Any) -> None:
        """Count rows, each number of an output with that of the label."""
        for label, output in zip(labels, preds, strict=True):
            x, y = (array.asnumpy().astype(np.float64).reshape(-1) for array in (label, output))
            self.sums += [len(x), x.sum(), y.sum(), x @ x, y @ y, x @ y]

    def get(self) -> tuple[str, float]:
        """Return name and value; no number where labels or outputs are all the same."""
        count, x, y, xx, yy, xy = self.sums
        spread_x, spread_y = count * xx - x * x, count * yy - y * y
        if spread_x <= _ROUNDING * count * xx or spread_y <= _ROUNDING * count * yy:
            return self.name, math.nan
        return self.name, float((count * xy - x * y) / math.sqrt(spread_x) / math.sqrt(spread_y))


def _weigh(function: Any) -> Any:
    """Return a function of labels and outputs whose value counts as often as there are rows, if it is one number."""

    def weighed(labels: Any, outputs: Any) -> Any:
        value = function(labels, outputs)
        return value if isinstance(value, tuple) else (value * len(labels), len(labels))

    return weighed
