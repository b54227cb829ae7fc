"""Two classes, of which a block that learns nothing is often wrong, measured by all that MXNet measures classes by."""

import mxnet as mx
import numpy as np
from mxnet import gluon
from mxnet.gluon import nn


def build_model():
    """Return a block whose outputs are probabilities."""
    layer = nn.Dense(2, in_units=12)
    layer.initialize()
    layer.weight.set_data(mx.nd.array([[0.0] * 12, [0.4, 0.3, 0.2] + [0.0] * 9]))
    layer.bias.set_data(mx.nd.array([0.3, 0.0]))
    net = nn.HybridSequential()
    net.add(layer, nn.HybridLambda("softmax"))
    return net


def build_trainer(params):
    """Return a trainer that changes nothing."""
    return gluon.Trainer(params, "sgd", {"learning_rate": 0.0})


class WorstRecall(mx.metric.EvalMetric):
    """The lower of what is found of each class, from a table that is set to zero in its place."""

    def __init__(self):
        self.table = np.zeros((2, 2), dtype=np.int64)
        super().__init__("worst_recall")

    def reset(self):
        """Begin an epoch."""
        self.table[:] = 0

    def update(self, labels, preds):
        """Count rows by label and by what was said of them."""
        for label, output in zip(labels, preds, strict=True):
            np.add.at(self.table, (label.asnumpy(), output.asnumpy().argmax(axis=1)), 1)

    def get(self):
        """Return name and value."""
        return self.name, float((self.table.diagonal() / np.maximum(self.table.sum(axis=1), 1)).min())


class Median(mx.metric.EvalMetric):
    """The median of the outputs, which are all kept: there is nothing to add up."""

    def __init__(self):
        super().__init__("median")

    def reset(self):
        """Begin an epoch."""
        super().reset()
        self.outputs = []

    def update(self, labels, preds):
        """Keep outputs."""
        self.outputs += [output.asnumpy()[:, 1] for output in preds]

    def get(self):
        """Return name and value."""
        return self.name, float(np.median(np.concatenate(self.outputs))) if self.outputs else float("nan")


def build_metrics():
    """Return metrics; those of MXNet as they are when nothing is said about averages, too."""
    names = "f1", "mcc", "pcc", "acc", "ce", "nll_loss"
    micro = [mx.metric.F1(name="f1_micro", average="micro"), mx.metric.MCC(name="mcc_micro", average="micro")]
    more = [mx.metric.Perplexity(ignore_label=None), WorstRecall(), Median()]
    return [mx.metric.create(list(names)), *micro, *more]
