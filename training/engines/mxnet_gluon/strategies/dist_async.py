"""Strategy `dist_async`: one replica in each of several processes that do not wait for each other; servers update.

https://mxnet.apache.org/versions/1.9.1/api/faq/distributed_training. A step is an update by each rank, of its rows of
the global batch and divided by the rows of all. Ranks meet where something is saved or told: then no update is on its
way, and what the servers remember is fetched from them, which MXNet does not do (K38).
"""

from __future__ import annotations

import copy
import math
import os
from collections.abc import Iterator, Sequence
from typing import Any

import mxnet as mx
from mxnet.lr_scheduler import LRScheduler

from training.engines.agreement import Vector
from training.engines.mxnet_gluon.parameters import Arrays
from training.engines.mxnet_gluon.serving import render_optimizer
from training.engines.mxnet_gluon.store_keys import COUNTS, WEIGHT, StateKey, check_counts, state_key
from training.engines.mxnet_gluon.store_updates import pack_parts, read_counts, unpack_part, write_counts
from training.engines.mxnet_gluon.strategies.store import ReplicaOfStore, check_storable
from training.engines.mxnet_gluon.trainer_state import check_optimizer, iter_trained
from training.run.rank import RankContext
from training.spec.train import TrainSpec


class RateByStep(LRScheduler):  # type: ignore[misc]  # MXNet ships no types
    """The rate of a schedule by steps, for an optimizer that counts the updates of all ranks.

    Args:
        schedule: Somebody's schedule, or ours of the warm-up.
        updates: Of a step.
    """

    def __init__(self, schedule: Any, updates: int) -> None:
        super().__init__(base_lr=schedule.base_lr)
        self._schedule, self._updates = schedule, updates

    def __call__(self, num_update: int) -> float:
        """Return the rate of the update `num_update`, from 1."""
        return float(self._schedule(math.ceil(num_update / self._updates)))


class DistAsync(ReplicaOfStore):
    """Waits, when made, until all ranks have joined.

    Args:
        ctx: What the launcher made of this process.

    Raises:
        LaunchError: The gang has another size than the plan says.
    """

    def __init__(self, ctx: RankContext) -> None:
        super().__init__(ctx, "dist_async")
        self.first_replica, self._is_chief = ctx.rank, ctx.is_chief
        self._servers = int(os.environ["DMLC_NUM_SERVER"])
        self._first = 0
        self._rows = 1
        self._trainer: Any = None

    def place(self, net: Any, train: TrainSpec) -> None:
        """Put the parameters on the device of this rank, and note the rows of a step."""
        super().place(net, train)
        self._rows = train.batch_size

    def make_trainers(self, net: Any, optimizer: Any) -> Sequence[Any]:
        """Return a trainer that updates nothing: it holds what the servers' optimizers remember when that is asked for.

        Raises:
            SpecError: A gradient is sparse, a parameter is no array of 32-bit floats, there are too many, or the
                optimizer must update all.
        """
        check_storable(net, "dist_async")
        check_optimizer(optimizer, optimizers=self._servers)
        trainers = super().make_trainers(net, optimizer)
        (self._trainer,) = trainers
        parameters = self._trainer._params
        parts = max((len(arrays) for _, arrays in self._iter_states()), default=0)
        check_counts(len(parameters), parts, self._servers)
        self._first = self.ranks.take_keys(len(parameters))
        for index, parameter in iter_trained(self._trainer):
            self.ranks.store.init(self._first + index, parameter.data())
        if self._is_chief:
            self.ranks.store._send_command_to_servers(0, render_optimizer(self._make_optimizer()))
        self._init_states()
        self._send_states()
        return trainers

    def update(self, trainers: Sequence[Any], global_batch_size: int) -> None:
        """Have the servers update by the gradients of this rank, and take what they have by then."""
        store, scale = self.ranks.store, self._trainer._scale / global_batch_size
        for index, parameter in iter_trained(self._trainer):
            # A copy: the store writes what it is asked for into the array that was pushed last.
            store.push(self._first + index, parameter.grad() * scale, priority=-index)
            store.pull(self._first + index, out=parameter.data(), priority=-index)
        self._trainer.optimizer.num_update += 1  # of this rank's steps; its schedule tells the rate

    def gather_losses(self, losses: Vector) -> Vector:
        """Return the mean loss of this rank alone, which waits for no other."""
        return losses

    def settle(self, net: Any) -> None:
        """Wait until all ranks have made the same steps, and take what the servers have then."""
        self.ranks.meet()
        for index, parameter in iter_trained(self._trainer):
            self.ranks.store.pull(self._first + index, out=parameter.data())
        self.ranks.meet()
        super().settle(net)

    def read_trainers(self, net: Any, trainers: Sequence[Any]) -> Arrays:
        """Return what the servers' optimizers remember; the other ranks wait until the chief has it."""
        if self._is_chief:
            self._fetch_states()
        arrays = super().read_trainers(net, trainers)
        self.ranks.meet()
        return arrays

    def write_trainers(self, net: Any, trainers: Sequence[Any], arrays: Arrays) -> None:
        """Set what the servers' optimizers remember, and the parameters, to those of the chief."""
        super().write_trainers(net, trainers, arrays)
        self._send_states()

    def _make_optimizer(self) -> Any:
        """Return the optimizer for the servers: by their numbers of the parameters; gradients come to it scaled."""
        optimizer = copy.copy(self._trainer.optimizer)
        trained = list(iter_trained(self._trainer))
        optimizer.lr_mult = {self._first + index: parameter.lr_mult for index, parameter in trained}
        optimizer.wd_mult = {self._first + index: parameter.wd_mult for index, parameter in trained}
        optimizer.param_dict, optimizer.rescale_grad = {}, 1.0
        if optimizer.lr_scheduler is not None and self.replicas > 1:
            optimizer.lr_scheduler = RateByStep(optimizer.lr_scheduler, self.replicas)
        return optimizer

    def _iter_states(self) -> Iterator[tuple[int, list[Any]]]:
        (updater,) = self._trainer._updaters
        for index, _ in iter_trained(self._trainer):
            yield index, pack_parts(updater.states[index])

    def _iter_parts(self, *, is_write: bool) -> Iterator[tuple[int, int, Any, int]]:
        """Yield parameter, part, array and number in the store of all that the optimizer remembers."""
        for index, arrays in self._iter_states():
            counts = mx.nd.array(read_counts(self._trainer.optimizer, index, self.replicas))
            for part, array in [*enumerate(arrays), (COUNTS, counts)]:
                key = StateKey(self._first + index, part, is_write)
                yield index, part, array, state_key(key, self._servers)

    def _init_states(self) -> None:
        for is_write in (False, True):
            for _, _, array, key in self._iter_parts(is_write=is_write):
                self.ranks.store.init(key, mx.nd.zeros(array.shape))
        for index, parameter in iter_trained(self._trainer):
            self.ranks.store.init(self._weight_key(index), mx.nd.zeros(parameter.shape))

    def _send_states(self) -> None:
        """Give the servers the chief's parameters and what its trainer holds."""
        self.ranks.meet()
        store = self.ranks.store
        if self._is_chief:
            # In this order: states are made from the weights, which a gradient of zeros then puts in their place.
            for index, parameter in iter_trained(self._trainer):
                store.push(self._weight_key(index), parameter.data().copy())
            mx.nd.waitall()
            for _, _, array, key in self._iter_parts(is_write=True):
                store.push(key, array.copy())
            mx.nd.waitall()
            for index, parameter in iter_trained(self._trainer):
                store.push(self._first + index, mx.nd.zeros(parameter.shape))
        self.ranks.meet()

    def _weight_key(self, index: int) -> int:
        return state_key(StateKey(self._first + index, WEIGHT, True), self._servers)

    def _fetch_states(self) -> None:
        """Take into the trainer what the servers remember; to be called while no update is on its way."""
        store, states = self.ranks.store, self._trainer._updaters[0].states
        for index, part, array, key in self._iter_parts(is_write=False):
            store.push(key, mx.nd.zeros(array.shape))
            fetched = mx.nd.zeros(array.shape)
            store.pull(key, out=fetched)
            if part == COUNTS:
                write_counts(self._trainer.optimizer, index, fetched.asnumpy(), self.replicas)
            else:
                states[index] = unpack_part(states[index], part, fetched)
