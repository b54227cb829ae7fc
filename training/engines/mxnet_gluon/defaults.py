"""What a Gluon file gets that says nothing of its loss, metrics or trainer: by the type of the labels."""

from __future__ import annotations

from typing import Any

import mxnet as mx
import numpy as np

LEARNING_RATE = 0.001


def is_classification(labels: np.dtype[Any]) -> bool:
    """Whether labels of this type are numbers of classes: whole numbers are."""
    return labels.kind in "iub"


def choose_loss(labels: np.dtype[Any]) -> Any:
    """Return the cross-entropy of logits for classes, half the squared difference for numbers."""
    return mx.gluon.loss.SoftmaxCrossEntropyLoss() if is_classification(labels) else mx.gluon.loss.L2Loss()


def choose_metrics(labels: np.dtype[Any]) -> list[Any]:
    """Return accuracy for classes; mean absolute and mean squared error for numbers."""
    if is_classification(labels):
        return [mx.metric.Accuracy(name="accuracy")]
    return [mx.metric.MAE(name="mae"), mx.metric.MSE(name="mse")]


def choose_optimizer() -> Any:
    """Return Adam."""
    return mx.optimizer.Adam(learning_rate=LEARNING_RATE)
