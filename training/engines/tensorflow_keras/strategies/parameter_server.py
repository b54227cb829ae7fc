"""Strategy `parameter_server`: a chief hands out shares of the batches; workers update variables that servers keep.

https://www.tensorflow.org/tutorials/distribute/parameter_server_training. Asynchronous: with more than one worker the
equivalence law does not hold.
"""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from training.engines.tensorflow_keras.asynchronous_fit import AsynchronousFit, make_update
from training.engines.tensorflow_keras.observed_step import keep_loss
from training.engines.tensorflow_keras.shares import cut
from training.engines.tensorflow_keras.strategies.strategy import MakeDataset, OneProcess
from training.errors import LaunchError
from training.plan.tf_config import parse_tf_config
from training.run.rank import RankContext

if TYPE_CHECKING:
    from training.engines.tensorflow_keras.gang_callbacks import GangCallbacks


class ParameterServer(OneProcess):
    """Waits, when made, until all workers and servers have joined; runs on the chief only.

    Args:
        ctx: What the launcher made of this process.

    Raises:
        SpecError: TF_CONFIG is absent or malformed.
        LaunchError: A worker has another number of devices than one.
    """

    def __init__(self, ctx: RankContext) -> None:
        config = parse_tf_config(os.environ.get("TF_CONFIG", ""))
        resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
        self._strategy = tf.distribute.ParameterServerStrategy(resolver)
        self._coordinator = tf.distribute.coordinator.ClusterCoordinator(self._strategy)
        self.replicas = self.updates_per_step = len(config.cluster["worker"])
        devices = int(self._strategy.num_replicas_in_sync)
        if devices != 1:  # TensorFlow would give each of them the whole share
            raise LaunchError(f"each worker must compute on one device. Received: {devices} devices a worker.")

    def scope(self) -> AbstractContextManager[Any]:
        """Return the scope in which variables are made on the parameter servers, in turn."""
        scope: AbstractContextManager[Any] = self._strategy.scope()
        return scope

    def fit(self, model: Any, make_dataset: MakeDataset, callbacks: GangCallbacks, **span: int) -> None:
        """Train by `AsynchronousFit`; the chief reads the rows and sends each worker its share."""
        shares = make_dataset(0, 1).map(self._cut)
        with keep_loss(model) as train_step:
            update = make_update(self._strategy, model, train_step)
            fitting = AsynchronousFit(model, lambda share: self._coordinator.schedule(update, args=(share,)), callbacks)
            fitting.run(iter(shares), **span)

    def _cut(self, *batch: Any) -> tuple[Any, ...]:
        """Return the shares of a global batch, one a worker; they are cut here, so that it is read once."""
        return tuple(cut(batch, index, self.replicas) for index in range(self.replicas))

    def needs_own_evaluation_model(self) -> bool:
        """Return True: the chief evaluates on variables of its own."""
        return True
