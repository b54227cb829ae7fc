"""A metric that keeps a table of another size on each rank."""

import os

import mxnet as mx
import numpy as np
from mxnet.gluon import nn


def build_model():
    """Return a block."""
    return nn.Dense(1)


class Uneven(mx.metric.EvalMetric):
    """Counts nothing."""

    def reset(self):
        """Begin an epoch."""
        super().reset()
        self.table = np.zeros(2 + int(os.environ["GANGER_RANK"]))

    def update(self, labels, preds):
        """Do nothing."""


def build_metrics():
    """Return the metric."""
    return Uneven("uneven")
