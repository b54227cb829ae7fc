"""A block that is not hybrid: it looks into its numbers, so that it has no symbol (K38). Metrics that keep tables."""

import mxnet as mx
import numpy as np
from mxnet import gluon
from mxnet.gluon import nn


class Plain(gluon.Block):
    """Leaves out the second layer where the rows are small."""

    def __init__(self, units):
        super().__init__()
        self.first, self.second, self.output = nn.Dense(units), nn.Dense(units), nn.Dense(2)

    def forward(self, x):
        """Look, then compute."""
        hidden = self.first(x)
        deep = self.second(hidden)
        return self.output(deep if float(x.abs().mean().asscalar()) > 0.1 else hidden + 0 * deep)


def build_model(units=4):
    """Return the block."""
    return Plain(units)


class Overlap(mx.metric.EvalMetric):
    """The intersection over the union, mean over classes, whose `reset` goes by a setting."""

    def __init__(self, classes):
        self.classes = classes
        super().__init__("overlap")

    def reset(self):
        """Begin an epoch."""
        super().reset()
        self.table = np.zeros((self.classes, self.classes))

    def update(self, labels, preds):
        """Count rows by label and by what was said of them."""
        for label, output in zip(labels, preds, strict=True):
            np.add.at(self.table, (label.asnumpy().astype(int), output.asnumpy().argmax(axis=1)), 1)

    def get(self):
        """Return name and value."""
        common = self.table.diagonal()
        return self.name, float(np.mean(common / (self.table.sum(axis=0) + self.table.sum(axis=1) - common)))


def build_metrics():
    """Return metrics that keep tables, and one that can be computed from what is in them."""
    return [mx.metric.PCC(), Overlap(2), mx.metric.Accuracy()]
