"""Two layers with the same weights, which two devices cannot both have (K33)."""

from mxnet.gluon import nn


def build_model():
    """Return a block."""
    net = nn.HybridSequential()
    first = nn.Dense(64)
    net.add(first, nn.Dense(64, params=first.params), nn.Dense(10))
    return net
