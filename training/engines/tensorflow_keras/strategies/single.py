"""Strategy `single`: one process, one replica; the measure for all others."""

from __future__ import annotations

import contextlib
from typing import Any

import tensorflow as tf

from training.engines.tensorflow_keras.strategies.strategy import MakeDataset, Vector
from training.errors import PreflightError
from training.run.rank import RankContext


class Single:
    """TensorFlow's default: whatever the first device is."""

    replicas = 1

    def __init__(self, ctx: RankContext) -> None:
        if ctx.world_size != 1:
            raise PreflightError(
                f"the strategy single trains on one rank. Received: {ctx.world_size} ranks. "
                "Set cluster.workers to 1, or train.strategy to multi_worker_mirrored."
            )

    def scope(self) -> contextlib.AbstractContextManager[Any]:
        """Return a context that does nothing."""
        return contextlib.nullcontext()

    def distribute(self, make_dataset: MakeDataset) -> Any:
        """Return the dataset of the only rank."""
        return make_dataset(0, 1)

    def gather(self, values: Any) -> Any:
        """Return `values` as the only row."""
        return tf.expand_dims(values, 0)

    def add_up(self, values: Vector) -> Vector:
        """Return `values`."""
        return values

    def needs_own_evaluation_model(self) -> bool:
        """Return False: the trained model itself can."""
        return False
