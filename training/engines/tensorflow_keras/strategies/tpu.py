"""Strategy `tpu`: one process, a replica on each core of a TPU.

https://www.tensorflow.org/api_docs/python/tf/distribute/TPUStrategy. Never run by us on a TPU: there is none here.
"""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from typing import Any

import tensorflow as tf

from training.engines.tensorflow_keras.strategies.keras_fit import KerasFit
from training.engines.tensorflow_keras.strategies.strategy import MakeDataset, OneProcess
from training.errors import PreflightError
from training.run.rank import RankContext


class TPU(KerasFit, OneProcess):
    """Finds the TPU that `TPU_NAME` names, or the one of this machine.

    Args:
        ctx: What the launcher made of this process.

    Raises:
        PreflightError: No TPU answers.
    """

    def __init__(self, ctx: RankContext) -> None:
        name = os.environ.get("TPU_NAME", "local")
        try:
            resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu=name)
            tf.config.experimental_connect_to_cluster(resolver)
            tf.tpu.experimental.initialize_tpu_system(resolver)
            self._strategy = tf.distribute.TPUStrategy(resolver)
        except (tf.errors.OpError, ValueError, RuntimeError) as error:
            raise PreflightError(f"a TPU must answer as {name!r}. Received: {error}") from error
        self.replicas = self.loss_scale = int(self._strategy.num_replicas_in_sync)

    def scope(self) -> AbstractContextManager[Any]:
        """Return the scope in which variables are mirrored on all cores."""
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
