"""Each optimizer that MXNet ships: a training that goes on from its saved state, and one on two devices."""

import inspect

import mxnet as mx
import numpy as np
from mxnet import gluon
from mxnet.gluon import nn

from training.engines.mxnet_gluon.parameters import read_parameters, write_parameters
from training.engines.mxnet_gluon.runtime import seed_step
from training.engines.mxnet_gluon.strategies.data_parallel import DataParallel
from training.errors import GangerError
from training.run.rank import RankContext
from training.spec.train import MXNetTrain

ROWS, MIDDLE, STEPS = 6, 5, 9
#: What MXNet's own optimizers need to work at all: DCASGD no momentum, GroupAdaGrad matrices without decay.
OPTIONS = {"dcasgd": {"momentum": 0.0}, "groupadagrad": {"wd": 0.0}, "rmsprop": {"centered": True}}
BY_CLASSES = {
    name: options for name, options in mx.optimizer.Optimizer.opt_registry.items() if "mxnet" in options.__module__
}


class Training:
    """A block with an optimizer on some devices, at its first step.

    Args:
        name: Of the optimizer, as MXNet calls it.
        devices: Their number.
    """

    def __init__(self, name, devices):
        mx.random.seed(1)
        np.random.seed(1)
        with mx.name.NameManager():
            self.net = nn.HybridSequential()
            for inputs, units in ((4, 5), (5, 4), (4, 3)):
                self.net.add(nn.Dense(units, in_units=inputs, activation="tanh", use_bias=name != "groupadagrad"))
            self.net.initialize(mx.init.Xavier())
        self._strategy = DataParallel(RankContext(rank=0, world_size=1, devices=devices))
        self._strategy.place(self.net, MXNetTrain(engine="mxnet", epochs=1, batch_size=ROWS, strategy="data_parallel"))
        self._trainers = self._strategy.make_trainers(self.net, make_optimizer(name))

    def train(self, first, last):
        """Make the steps from `first` to before `last`, and return the weights."""
        random = np.random.default_rng(0)
        x, y = random.normal(size=(STEPS, ROWS, 4)).astype(np.float32), random.integers(0, 3, size=(STEPS, ROWS))
        for step in range(first, last):
            seed_step(7, step, 0)
            self._strategy.compute(self.net, gluon.loss.SoftmaxCrossEntropyLoss(), (x[step], y[step]))
            self._strategy.update(self._trainers, ROWS)
        return read_parameters(self.net)

    def read(self):
        """Return what a checkpoint would hold."""
        return read_parameters(self.net), self._strategy.read_trainers(self.net, self._trainers)

    def write(self, saved):
        """Go to where another training was."""
        write_parameters(self.net, saved[0])
        self._strategy.write_trainers(self.net, self._trainers, saved[1])


def make_optimizer(name):
    """Return an optimizer with all that it may have to remember: momentum, and a rate that changes."""
    kind = BY_CLASSES[name]
    schedule = mx.lr_scheduler.FactorScheduler(step=1, factor=0.8, base_lr=0.05)
    options = {"learning_rate": 0.05, "lr_scheduler": schedule, "wd": 0.01, "clip_gradient": 0.5}
    if any("momentum" in inspect.signature(base.__init__).parameters for base in kind.__mro__):
        options["momentum"] = 0.9
    return kind(**options | OPTIONS.get(name, {}))


def resume_each():
    """Return for each optimizer what was found with it."""
    return {name: describe(name) for name in BY_CLASSES}


def describe(name):
    """Return how far weights moved, and how far they are from those of a resumed training, and of two devices."""
    undisturbed, resumed = Training(name, 1), Training(name, 1)
    undisturbed.train(0, MIDDLE)
    before, _ = saved = undisturbed.read()
    resumed.write(saved)
    weights = undisturbed.train(MIDDLE, STEPS)
    found = {
        "moved": measure(weights, before),
        "resumed": measure(resumed.train(MIDDLE, STEPS), weights),
    }
    try:
        found["two"] = measure(Training(name, 2).train(0, STEPS), weights)
    except GangerError as error:
        found["refused"] = str(error)
    return found


def measure(arrays, others):
    """Return the largest difference."""
    return max(float(np.abs(array - others[name]).max()) for name, array in arrays.items())
