"""Strategy `mirrored`: one process, a replica on each of its devices; gradients are added between devices.

https://www.tensorflow.org/api_docs/python/tf/distribute/MirroredStrategy
"""

from __future__ import annotations

import tensorflow as tf

from training.engines.tensorflow_keras.strategies.devices import ReplicasOnDevices, make_devices
from training.engines.tensorflow_keras.strategies.replicas import check_replicas
from training.run.rank import RankContext


class Mirrored(ReplicasOnDevices):
    """Keeps a copy of every variable on each device.

    Args:
        ctx: What the launcher made of this process.

    Raises:
        PreflightError: There are fewer devices than were asked for.
        LaunchError: The strategy uses another number of them.
    """

    def __init__(self, ctx: RankContext) -> None:
        super().__init__(tf.distribute.MirroredStrategy(make_devices(ctx.devices)))
        check_replicas(self.replicas, ctx.devices)
