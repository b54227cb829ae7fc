"""What strategies have in common whose devices each hold the whole block."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from mxnet import autograd, gluon

from training.engines.agreement import Vector
from training.engines.mxnet_gluon.feeding import Rows, cut_equally, make_array
from training.engines.mxnet_gluon.parameters import Arrays, iter_parameters, name_parameters
from training.engines.mxnet_gluon.strategies.strategy import Share
from training.engines.mxnet_gluon.trainer_state import (
    check_optimizer,
    prepare_states,
    read_trainers,
    set_scale,
    write_trainers,
)
from training.spec.train import MXNetTrain, TrainSpec


class ReplicasOnContexts:
    """The whole block on each device of this rank; gradients are added up over them.

    Attributes:
        kvstore: What `gluon.Trainer` adds gradients up by; None where there is nothing to add.
    """

    replicas: int
    contexts: tuple[Any, ...]
    first_replica = 0
    kvstore: Any = None

    def place(self, net: Any, train: TrainSpec) -> None:
        """Copy all parameters to each device."""
        net.collect_params().reset_ctx(list(self.contexts))
        if not isinstance(train, MXNetTrain) or train.hybridize:
            net.hybridize()

    def make_trainers(self, net: Any, optimizer: Any) -> Sequence[Any]:
        """Return one trainer, which updates the copies of each device by itself: so its state can be saved (K38).

        Raises:
            SpecError: The optimizer cannot be saved, or cannot train copies.
        """
        check_optimizer(optimizer, copies=self.replicas)
        trainers = [
            gluon.Trainer(net.collect_params(), optimizer, kvstore=self.kvstore, update_on_kvstore=False),
        ]
        prepare_states(trainers)
        return trainers

    def compute(self, net: Any, loss: Any, rows: Rows) -> list[Share]:
        """Compute on all devices at once."""
        count = len(self.contexts)
        parts = zip(*(cut_equally(values, count) for values in rows), self.contexts, strict=True)
        with autograd.record():
            shares = [compute_share(net, loss, (x, y), context) for x, y, context in parts]
        autograd.backward([share.losses for share in shares])
        return shares

    def update(self, trainers: Sequence[Any], global_batch_size: int) -> None:
        """Have each trainer make its step."""
        for trainer in trainers:
            set_scale(trainer, global_batch_size)
            trainer.step(global_batch_size)

    def settle(self, net: Any) -> None:
        """Set what no gradient updates to its mean over this rank's devices."""
        if len(self.contexts) > 1:
            for parameter in iter_averages(net):
                mean = np.mean([array.asnumpy() for array in parameter.list_data()], axis=0, dtype=np.float64)
                parameter.set_data(make_array(mean.astype(parameter.dtype), self.contexts[0]))

    def read_trainers(self, net: Any, trainers: Sequence[Any]) -> Arrays:
        """Return the state of this rank's trainers."""
        return read_trainers(trainers, name_parameters(net))

    def write_trainers(self, net: Any, trainers: Sequence[Any], arrays: Arrays) -> None:
        """Set the state of this rank's trainers."""
        write_trainers(trainers, name_parameters(net), arrays)


class OneProcess:
    """What strategies have in common that keep all their devices in one process."""

    def add_up(self, values: Vector) -> Vector:
        """Return `values`: there is one rank."""
        return values

    def gather_losses(self, losses: Vector) -> Vector:
        """Return `losses`: there is one rank."""
        return losses


def compute_share(net: Any, loss: Any, rows: Rows, context: Any) -> Share:
    """Call block and loss on rows that go to `context`; labels go where the outputs are."""
    outputs = net(make_array(rows[0], context))
    labels = make_array(rows[1], outputs.context)
    return Share(loss(outputs, labels), outputs, labels)


def iter_averages(net: Any) -> Any:
    """Yield the parameters that the block updates itself while it computes: moving averages."""
    for name, parameter in iter_parameters(net):
        if parameter.grad_req == "null" and "running_" in name.rpartition(".")[2]:
            yield parameter
