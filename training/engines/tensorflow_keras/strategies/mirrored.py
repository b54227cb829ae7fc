"""Strategy `mirrored`: one process, a replica on each of its devices; gradients are added between devices.

https://www.tensorflow.org/api_docs/python/tf/distribute/MirroredStrategy
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import tensorflow as tf

from training.engines.tensorflow_keras.strategies.keras_fit import KerasFit
from training.engines.tensorflow_keras.strategies.logical_devices import make_devices
from training.engines.tensorflow_keras.strategies.strategy import MakeDataset, OneProcess
from training.run.rank import RankContext


class Mirrored(KerasFit, OneProcess):
    """Puts a copy of every variable on each device.

    Args:
        ctx: What the launcher made of this process.

    Raises:
        PreflightError: There are fewer devices than were asked for.
    """

    def __init__(self, ctx: RankContext) -> None:
        self._strategy = tf.distribute.MirroredStrategy(make_devices(ctx.devices))
        self.replicas = self.loss_scale = int(self._strategy.num_replicas_in_sync)

    def scope(self) -> AbstractContextManager[Any]:
        """Return the scope in which variables are mirrored on all devices."""
        scope: AbstractContextManager[Any] = self._strategy.scope()
        return scope

    def distribute(self, make_dataset: MakeDataset) -> Any:
        """Return the global batches; TensorFlow cuts each into consecutive equal parts, as ranks do (ADR 3)."""
        return self._strategy.experimental_distribute_dataset(make_dataset(0, 1))

    def gather(self, values: Any) -> Any:
        """Return `values` of all replicas, one row each."""
        return tf.distribute.get_replica_context().all_gather(tf.expand_dims(values, 0), axis=0)

    def needs_own_evaluation_model(self) -> bool:
        """Return True: evaluation would be cut over replicas, where a metric that is no mean goes wrong."""
        return True
