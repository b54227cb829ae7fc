"""What `dist_sync` and `dist_async` have in common: one replica in each of several processes that meet in a store."""

from __future__ import annotations

from typing import Any

import numpy as np

from training.engines.agreement import Vector
from training.engines.mxnet_gluon.key_value_store import StoreRanks
from training.engines.mxnet_gluon.parameters import iter_parameters
from training.engines.mxnet_gluon.strategies.dense import check_dense
from training.engines.mxnet_gluon.strategies.processes import ReplicaOfProcess
from training.errors import spec_error
from training.run.rank import RankContext


class ReplicaOfStore(ReplicaOfProcess):
    """Waits, when made, until all ranks have joined.

    Args:
        ctx: What the launcher made of this process.
        kind: Kind of the store, as MXNet calls it.

    Raises:
        LaunchError: The gang has another size than the plan says.
    """

    def __init__(self, ctx: RankContext, kind: str) -> None:
        super().__init__(ctx)
        self.ranks = StoreRanks(ctx, kind)

    def add_up(self, values: Vector) -> Vector:
        """Return the sum over ranks, added in the order of the ranks."""
        total: Vector = self.ranks.gather(values).sum(axis=0)
        return total

    def gather_losses(self, losses: Vector) -> Vector:
        """Return the mean losses of all ranks."""
        return self.ranks.gather(losses).reshape(-1)

    def broadcast(self, values: Any) -> Any:
        """Return the chief's values of a parameter."""
        return self.ranks.copy_from_chief(values.astype("float32")).astype(values.dtype)


def check_storable(net: Any, strategy: str) -> None:
    """Check that a store can take the parameters of a block.

    Raises:
        SpecError: A gradient is sparse, or a parameter is no array of 32-bit floats.
    """
    check_dense(net, strategy)
    for name, parameter in iter_parameters(net):
        dtype = np.dtype(parameter.dtype)
        if dtype != np.float32:
            raise spec_error(
                "train.strategy", f"{strategy} takes parameters of type float32. Received: {name}, {dtype}."
            )
