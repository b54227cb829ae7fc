"""Strategy `dist_sync`: one replica in each of several processes; servers add gradients up, each rank updates alike.

https://mxnet.apache.org/versions/1.9.1/api/faq/distributed_training. MXNet would have the servers update; what their
optimizers remember could not be saved then (K38).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mxnet as mx

from training.engines.mxnet_gluon.strategies.store import ReplicaOfStore, check_storable
from training.engines.mxnet_gluon.trainer_state import iter_trained
from training.run.rank import RankContext


class DistSync(ReplicaOfStore):
    """Waits, when made, until all ranks have joined.

    Args:
        ctx: What the launcher made of this process.

    Raises:
        LaunchError: The gang has another size than the plan says.
    """

    def __init__(self, ctx: RankContext) -> None:
        super().__init__(ctx, "dist_sync")
        self._first = 0

    def make_trainers(self, net: Any, optimizer: Any) -> Sequence[Any]:
        """Return one trainer, which updates the rank's own parameters.

        Raises:
            SpecError: A gradient is sparse, or a parameter is no array of 32-bit floats.
        """
        check_storable(net, "dist_sync")
        trainers = super().make_trainers(net, optimizer)
        self._first = self.ranks.take_keys(len(trainers[0]._params))
        for index, parameter in iter_trained(trainers[0]):
            self.ranks.store.init(self._first + index, mx.nd.zeros(parameter.shape))
        return trainers

    def update(self, trainers: Sequence[Any], global_batch_size: int) -> None:
        """Add gradients up over ranks, each as soon as it is there, then make the step."""
        (trainer,) = trainers
        gradients = [(self._first + index, parameter.grad(), index) for index, parameter in iter_trained(trainer)]
        for key, gradient, index in gradients:
            self.ranks.store.push(key, gradient, priority=-index)
            self.ranks.store.pull(key, out=gradient, priority=-index)
        trainer.update(global_batch_size)
