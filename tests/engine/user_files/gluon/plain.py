"""A block that is not hybrid: it looks into its numbers, so that it has no symbol (K38)."""

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
