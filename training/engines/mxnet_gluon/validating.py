"""A block on rows that it is not to learn from: loss and metrics as one process computes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from training.engines.mxnet_gluon.epoch_metrics import EpochMetrics
from training.engines.mxnet_gluon.gluon_model import GluonModel
from training.engines.mxnet_gluon.strategies.replicas import compute_share


def evaluate_model(
    model: GluonModel, x: Any, y: Any, batch_size: int, context: Any, beat: Callable[[], None] = lambda: None
) -> dict[str, float]:
    """Return loss and metrics on the given rows, all of them, in their order.

    Args:
        model: Its block is called outside of any recording, and so as in use: dropout does nothing.
        x: Features.
        y: Labels.
        batch_size: Rows that are computed at once.
        context: Device that features go to.
        beat: Called after each batch.
    """
    metrics = EpochMetrics(model.metrics)
    for start in range(0, len(x), batch_size):
        rows = x[start : start + batch_size], y[start : start + batch_size]
        share = compute_share(model.net, model.loss, rows, context)
        metrics.add(share.losses.asnumpy(), share.labels, share.outputs)
        beat()
    return metrics.read()
