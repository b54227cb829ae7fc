"""First weights that differ from process to process; a layer that learns its input's size at the first call."""

import os

import mxnet as mx
from mxnet import autograd
from mxnet.gluon import nn


class Telling(nn.Block):
    """Tells its weights whenever it is trained."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Dense(2)

    def forward(self, x):
        """Return the outputs of the layer."""
        if autograd.is_training():
            print("WEIGHTS", self.layer.weight.data().asnumpy().tobytes().hex(), flush=True)
        return self.layer(x)


def build_model():
    """Return a block."""
    mx.random.seed(os.getpid())
    net = Telling()
    net.initialize(mx.init.Normal(1.0))
    return net
