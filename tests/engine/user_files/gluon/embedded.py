"""Grey values as words, whose gradients may be sparse."""

from mxnet.gluon import nn


def build_model(sparse=True):
    """Return a block for the digits."""
    net = nn.HybridSequential()
    net.add(nn.Embedding(2, 4, sparse_grad=sparse), nn.Dense(10))
    return net
