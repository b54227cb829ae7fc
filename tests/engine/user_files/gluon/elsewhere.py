"""A block that its file puts on a device of its own choice, one that the training is not on."""

import mxnet as mx
from mxnet.gluon import nn


def build_model():
    """Return a block with parameters on another context."""
    net = nn.Dense(2, in_units=12)
    net.initialize(mx.init.One(), ctx=mx.cpu(1))
    return net
