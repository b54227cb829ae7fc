"""Strategy `model_parallel`: one process, each block on one of its devices; micro-batches keep all devices at work.

MXNet computes asynchronously, with a queue for each device: while the last device is at one micro-batch, the first is
at the next. Gradients are added up over the micro-batches, so that the step is that of the whole batch.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, cast

import mxnet as mx
from mxnet import autograd, gluon

from training.engines.mxnet_gluon.block_placement import choose_placement
from training.engines.mxnet_gluon.feeding import Rows, cut_equally
from training.engines.mxnet_gluon.fine_tuning import iter_blocks
from training.engines.mxnet_gluon.parameters import iter_parameters
from training.engines.mxnet_gluon.runtime import choose_contexts
from training.engines.mxnet_gluon.strategies.dense import check_dense
from training.engines.mxnet_gluon.strategies.replicas import OneProcess, ReplicasOnContexts, compute_share
from training.engines.mxnet_gluon.strategies.strategy import Share
from training.engines.mxnet_gluon.trainer_state import check_optimizer, prepare_states
from training.plan.micro_batches import choose_micro_batches, describe_step
from training.run.rank import RankContext
from training.spec.train import MXNetTrain, TrainSpec


class ModelParallel(ReplicasOnContexts, OneProcess):
    """GPUs, or parts of the CPU where there are none.

    Args:
        ctx: What the launcher made of this process.

    Raises:
        PreflightError: There are fewer GPUs than were asked for.
    """

    replicas = 1

    def __init__(self, ctx: RankContext) -> None:
        self.contexts = choose_contexts(ctx.devices)
        self._micro_batches = len(self.contexts)

    def place(self, net: Any, train: TrainSpec) -> None:
        """Put each block on its device, and have what it is called with brought there.

        Raises:
            SpecError: The blocks cannot be placed so, or a gradient is sparse: such ones cannot be added up.
        """
        check_dense(net, "model_parallel")
        options = cast("MXNetTrain", train)  # no other engine has this strategy
        count = len(self.contexts)
        self._micro_batches = choose_micro_batches(options.micro_batches, count, options.batch_size)
        wanted = {name: int(device) for name, device in options.placement.items()}
        placement = choose_placement(net, wanted, count)
        print(f"placement: {describe_step(placement, self._micro_batches)}", flush=True)
        net.hybridize(False)  # a compiled block runs on one device: only those that are placed whole are compiled
        net.collect_params().reset_ctx(self.contexts[0])
        blocks = dict(iter_blocks(net))
        for name, device in placement.items():
            place_block(blocks[name], self.contexts[device])
            if options.hybridize:
                blocks[name].hybridize()
        for _, parameter in iter_parameters(net):
            if parameter.grad_req == "write":
                parameter.grad_req = "add"

    def make_trainers(self, net: Any, optimizer: Any) -> Sequence[Any]:
        """Return a trainer for each device that learns: `gluon.Trainer` wants its parameters on the same ones.

        Raises:
            SpecError: The optimizer cannot be saved, or must update all parameters.
        """
        groups: dict[Any, dict[str, Any]] = {}
        for parameter in net.collect_params().values():
            if parameter.grad_req != "null":  # a trainer of frozen blocks alone would count no steps
                groups.setdefault(parameter.list_ctx()[0], {})[parameter.name] = parameter
        check_optimizer(optimizer, optimizers=len(groups))
        optimizer.param_dict = {}  # the user's trainer left all parameters here: they are not to be copied
        trainers = [
            gluon.Trainer(group, copy.deepcopy(optimizer), kvstore=None, update_on_kvstore=False)
            for group in groups.values()
        ]
        prepare_states(trainers)
        return trainers

    def compute(self, net: Any, loss: Any, rows: Rows) -> list[Share]:
        """Compute the micro-batches one after another; MXNet lets the devices overlap."""
        net.collect_params().zero_grad()
        shares = []
        for x, y in zip(*(cut_equally(values, self._micro_batches) for values in rows), strict=True):
            with autograd.record():
                share = compute_share(net, loss, (x, y), self.contexts[0])
            share.losses.backward()
            shares.append(share)
        return shares


def place_block(block: Any, context: Any) -> None:
    """Put a block on a device, and have what it is called with brought there; symbols pass as they are."""
    block.collect_params().reset_ctx(context)
    forward = block.forward

    def forward_there(*inputs: Any) -> Any:
        return forward(*(_bring(one, context) for one in inputs))

    block.forward = forward_there


def _bring(value: Any, context: Any) -> Any:
    if isinstance(value, mx.nd.NDArray):
        return value.as_in_context(context)
    return [_bring(one, context) for one in value] if isinstance(value, list | tuple) else value
