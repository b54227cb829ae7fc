"""Somebody's old symbol, wrapped."""

import mxnet as mx
from mxnet import gluon


def build_model(units=8):
    """Return a block."""
    data = mx.sym.var("data")
    hidden = mx.sym.Activation(mx.sym.FullyConnected(data, num_hidden=units, name="fc1"), act_type="relu")
    return gluon.SymbolBlock(mx.sym.FullyConnected(hidden, num_hidden=2, name="fc2"), data)
