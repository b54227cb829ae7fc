"""What strategies have in common with one replica in each of several processes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import mxnet as mx
import numpy as np

from training.engines.agreement import Vector
from training.engines.mxnet_gluon.parameters import iter_parameters
from training.engines.mxnet_gluon.runtime import choose_own_context
from training.engines.mxnet_gluon.strategies.replicas import ReplicasOnContexts, iter_averages
from training.run.rank import RankContext
from training.spec.train import TrainSpec


class ReplicaOfProcess(ReplicasOnContexts, ABC):
    """The block on one device of this process; ranks agree by `add_up`.

    Args:
        ctx: What the launcher made of this process.
    """

    def __init__(self, ctx: RankContext) -> None:
        self.contexts = (choose_own_context(ctx.local_rank),)
        self.replicas = ctx.world_size

    def place(self, net: Any, train: TrainSpec) -> None:
        """Put the parameters on the device of this rank; all ranks have the chief's, whatever they were built with."""
        super().place(net, train)
        for _, parameter in iter_parameters(net):
            values = self.broadcast(parameter.data().asnumpy())
            parameter.set_data(mx.nd.array(values, dtype=values.dtype))

    def settle(self, net: Any) -> None:
        """Set what no gradient updates to its mean over ranks."""
        for parameter in iter_averages(net):
            values = parameter.data().asnumpy()
            mean = self.add_up(values.astype(np.float64).reshape(-1)) / self.replicas
            parameter.set_data(mx.nd.array(mean.reshape(values.shape).astype(values.dtype), dtype=values.dtype))

    @abstractmethod
    def add_up(self, values: Vector) -> Vector:
        """Return the sum over ranks."""

    @abstractmethod
    def broadcast(self, values: Any) -> Any:
        """Return the chief's values of a parameter."""
