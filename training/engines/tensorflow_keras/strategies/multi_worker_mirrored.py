"""Strategy `multi_worker_mirrored`: one replica in each of several processes; gradients are added by collectives.

https://www.tensorflow.org/api_docs/python/tf/distribute/MultiWorkerMirroredStrategy
"""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from typing import Any

import tensorflow as tf

from training.engines.tensorflow_keras.rows import Batch
from training.engines.tensorflow_keras.shims.reduce_per_replica import hand_back_reduced_logs
from training.engines.tensorflow_keras.shims.summed_gradients import sum_before_use
from training.engines.tensorflow_keras.strategies.keras_fit import KerasFit
from training.engines.tensorflow_keras.strategies.own_values import settle_own_values
from training.engines.tensorflow_keras.strategies.replicas import check_replicas
from training.engines.tensorflow_keras.strategies.strategy import KnownToTensorFlow, MakeDataset, Vector
from training.errors import spec_error
from training.plan.tf_config import parse_tf_config
from training.run.rank import RankContext
from training.spec.train import TrainSpec


class MultiWorkerMirrored(KerasFit, KnownToTensorFlow):
    """Waits, when made, until all ranks have joined.

    Args:
        ctx: What the launcher made of this process.

    Raises:
        SpecError: TF_CONFIG is absent or malformed.
        LaunchError: The cluster has another size than the plan says.
    """

    def __init__(self, ctx: RankContext) -> None:
        _check_tf_config(ctx)
        self._strategy = tf.distribute.MultiWorkerMirroredStrategy()
        self.replicas = self.loss_scale = int(self._strategy.num_replicas_in_sync)
        self._rank = ctx.rank
        check_replicas(self.replicas, ctx.world_size)
        hand_back_reduced_logs()

    def scope(self) -> AbstractContextManager[Any]:
        """Return the scope in which variables are mirrored on all ranks; their first values are those of rank 0."""
        scope: AbstractContextManager[Any] = self._strategy.scope()
        return scope

    def adopt(self, model: Any, train: TrainSpec, example: Batch) -> None:
        """Have the optimizer clip and judge gradients of the global batch."""
        super().adopt(model, train, example)
        sum_before_use(model.optimizer)

    def distribute(self, make_dataset: MakeDataset) -> Any:
        """Return the rank's own slices as a distributed dataset: no auto-sharding, no rebatching."""
        return self._strategy.distribute_datasets_from_function(lambda _: make_dataset(self._rank, self.replicas))

    def gather(self, values: Any) -> Any:
        """Return `values` of all replicas, one row each, by one collective."""
        return tf.distribute.get_replica_context().all_gather(tf.expand_dims(values, 0), axis=0)

    def add_up(self, values: Vector) -> Vector:
        """Return the sum over ranks by one collective."""
        total: Vector = self._strategy.reduce(tf.distribute.ReduceOp.SUM, tf.constant(values), axis=None).numpy()
        return total

    def settle(self, model: Any) -> None:
        """Set moving averages and the like to their mean over ranks."""
        settle_own_values(model, lambda values: self.add_up(values) / self.replicas)

    def needs_own_evaluation_model(self) -> bool:
        """Return True: a mirrored model evaluates on all ranks or on none."""
        return True


def _check_tf_config(ctx: RankContext) -> None:
    text = os.environ.get("TF_CONFIG")
    if not text:
        raise spec_error(
            "TF_CONFIG", f"must be set for {ctx.world_size} ranks. Received: none.", "The launcher sets it."
        )
    config = parse_tf_config(text)
    members = sum(len(addresses) for addresses in config.cluster.values())
    if members != ctx.world_size:
        raise spec_error("TF_CONFIG", f"must list {ctx.world_size} members. Received: {members}.")
