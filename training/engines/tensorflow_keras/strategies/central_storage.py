"""Strategy `central_storage`: one process, variables in one place, a replica of the computation on each device.

https://www.tensorflow.org/api_docs/python/tf/distribute/experimental/CentralStorageStrategy
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

import tensorflow as tf

from training.engines.tensorflow_keras.rows import Batch
from training.engines.tensorflow_keras.shims.central_variables import aggregate_updates, scale_without_branch
from training.engines.tensorflow_keras.strategies.devices import ReplicasOnDevices, make_devices
from training.engines.tensorflow_keras.strategies.replicas import check_replicas
from training.engines.tensorflow_keras.strategies.strategy import Vector
from training.run.rank import RankContext
from training.spec.train import TrainSpec


class CentralStorage(ReplicasOnDevices):
    """Keeps every variable once, on the CPU.

    Args:
        ctx: What the launcher made of this process.

    Raises:
        PreflightError: There are fewer devices than were asked for.
        LaunchError: The strategy uses another number of them.
    """

    def __init__(self, ctx: RankContext) -> None:
        super().__init__(tf.distribute.experimental.CentralStorageStrategy(make_devices(ctx.devices), "CPU:0"))
        check_replicas(self.replicas, ctx.devices)

    def scope(self) -> AbstractContextManager[Any]:
        """Return the scope in which variables are made on the CPU, to be updated by all replicas together."""
        return self._scope()

    def adopt(self, model: Any, train: TrainSpec, example: Batch) -> None:
        """Have the optimizer use gradients of the global batch, and count where replicas can meet."""
        super().adopt(model, train, example)
        scale_without_branch(model.optimizer)

    def gather(self, values: Any) -> Any:
        """Return `values` of all replicas, one row each; by a sum, since this strategy has no gather."""
        context = tf.distribute.get_replica_context()
        own = tf.one_hot(context.replica_id_in_sync_group, self.replicas, dtype=values.dtype)
        return context.all_reduce(tf.distribute.ReduceOp.SUM, own[:, tf.newaxis] * values[tf.newaxis, :])

    def pool(self, values: Vector) -> Vector:
        """Return the sum over replicas: a metric's variable is their mean."""
        return values * self.replicas

    def portion(self, values: Vector) -> Vector:
        """Return the mean over replicas."""
        return values / self.replicas

    @contextlib.contextmanager
    def _scope(self) -> Iterator[None]:
        with self._strategy.scope(), aggregate_updates():
            yield
