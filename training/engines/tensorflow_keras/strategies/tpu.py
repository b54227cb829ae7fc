"""Strategy `tpu`: one process, a replica on each core of a TPU.

https://www.tensorflow.org/api_docs/python/tf/distribute/TPUStrategy. Never run by us on a TPU: there is none here.
"""

from __future__ import annotations

import os

import tensorflow as tf

from training.engines.tensorflow_keras.strategies.devices import ReplicasOnDevices
from training.errors import PreflightError
from training.run.rank import RankContext


class TPU(ReplicasOnDevices):
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
            strategy = tf.distribute.TPUStrategy(resolver)
        except (tf.errors.OpError, ValueError, RuntimeError) as error:
            raise PreflightError(f"a TPU must answer as {name!r}. Received: {error}") from error
        super().__init__(strategy)
