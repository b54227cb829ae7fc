"""Strategy `horovod`: one replica in each of several processes; Horovod adds the gradients up.

https://horovod.readthedocs.io/en/stable/mxnet.html. Its `DistributedTrainer` would do the same; here the trainer is an
ordinary one, so that its state is saved as under any other strategy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import horovod.mxnet as hvd
import mxnet as mx

from training.engines.agreement import Vector
from training.engines.mxnet_gluon.strategies.dense import check_dense
from training.engines.mxnet_gluon.strategies.processes import ReplicaOfProcess
from training.engines.mxnet_gluon.trainer_state import iter_trained
from training.errors import LaunchError
from training.run.rank import RankContext
from training.spec.train import HorovodTrain, TrainSpec


class Horovod(ReplicaOfProcess):
    """Waits, when made, until all ranks have joined.

    Args:
        ctx: What the launcher made of this process.

    Raises:
        LaunchError: The gang has another size than the plan says.
    """

    def __init__(self, ctx: RankContext) -> None:
        super().__init__(ctx)
        self._compression = "none"
        hvd.init()
        found = int(hvd.rank()), int(hvd.size())
        if found != (ctx.rank, ctx.world_size):
            raise LaunchError(
                f"Horovod must count this as rank {ctx.rank} of {ctx.world_size}. "
                f"Received: rank {found[0]} of {found[1]}."
            )

    def place(self, net: Any, train: TrainSpec) -> None:
        """Put the parameters on the device of this rank, and note how gradients travel.

        Raises:
            SpecError: A gradient is sparse.
        """
        check_dense(net, "horovod")
        super().place(net, train)
        self._compression = train.compression if isinstance(train, HorovodTrain) else "none"

    def update(self, trainers: Sequence[Any], global_batch_size: int) -> None:
        """Add gradients up over ranks, then make the step."""
        (trainer,) = trainers
        gradients = [parameter.grad() for _, parameter in iter_trained(trainer)]
        if self._compression == "fp16":
            # Divided first: a sum over many rows may be more than 16 bits hold.
            halves = [(gradient / global_batch_size).astype("float16") for gradient in gradients]
            for gradient, half in zip(gradients, hvd.grouped_allreduce(halves, op=hvd.Sum), strict=True):
                gradient[:] = half.astype(gradient.dtype)
            trainer.update(1)
        else:
            hvd.grouped_allreduce_(gradients, op=hvd.Sum)
            trainer.update(global_batch_size)

    def add_up(self, values: Vector) -> Vector:
        """Return the sum over ranks by one collective."""
        total: Vector = hvd.allreduce(mx.nd.array(values, dtype=values.dtype), op=hvd.Sum).asnumpy()
        return total

    def gather_losses(self, losses: Vector) -> Vector:
        """Return the mean losses of all ranks."""
        gathered: Vector = hvd.allgather(mx.nd.array(losses, dtype=losses.dtype)).asnumpy()
        return gathered

    def broadcast(self, values: Any) -> Any:
        """Return the chief's values of a parameter."""
        return hvd.broadcast(mx.nd.array(values, dtype=values.dtype), root_rank=0).asnumpy()
