"""An optimizer of somebody's own that remembers all that can be saved; or, as `memory` says, something that cannot."""

import mxnet as mx
import numpy as np
from mxnet.gluon import nn


@mx.optimizer.register
class Remembering(mx.optimizer.Optimizer):
    """Momentum in NumPy, times a factor that depends on everything that it remembers."""

    def __init__(self, memory, **options):
        super().__init__(**options)
        self.memory, self.steps, self.updates, self.last, self.seen = memory, 0, 0, None, {}

    def create_state(self, index, weight):
        """Return arrays of MXNet and of NumPy, numbers, and None, in lists in tuples; or a text."""
        if self.memory == "text":
            return "a text"
        half = mx.nd.zeros(weight.shape, ctx=weight.context, dtype="float16")
        return (np.zeros(weight.shape), None, [0, 1.0, np.float32(0.1), True, [half]], np.arange(3))

    def update(self, index, weight, grad, state):
        """Change all of it."""
        self._update_count(index)
        momentum, _, (count, factor, small, is_odd, (half,)), whole = state
        gradient = (grad * self.rescale_grad).asnumpy().astype(np.float64)
        momentum[...] = 0.9 * momentum + gradient
        half[:] = mx.nd.array(momentum, ctx=half.context).astype("float16")
        whole += 1
        scale = factor * (1 + count % 3) * (1 + small) * (1.5 if is_odd else 1.0) * (1 + whole[0] % 2)
        if count and self.last is not None:  # whatever the order in which servers update parameters
            scale *= 0.5
        weight[:] -= self.lr * scale * mx.nd.array(0.7 * momentum + 0.3 * half.asnumpy(), ctx=weight.context)
        state[2][:4] = [count + 1, factor * 0.99, np.float32(small * np.float32(0.97)), not is_odd]
        self.steps, self.last = self._index_update_count[index], 1 / (1 + self._index_update_count[index])
        self.updates += self.memory == "updates"
        if self.memory == "beside":
            self.seen[index] = self.steps


def build_model():
    """Return a block of two, of which the first has fewer parameters."""
    net = nn.HybridSequential()
    net.add(nn.Dense(4, use_bias=False), nn.Dense(2))
    return net


def build_trainer(params, memory="all"):
    """Return the optimizer, or one of MXNet's that counts all updates."""
    return mx.optimizer.Nadam() if memory == "nadam" else Remembering(memory, learning_rate=0.05)
