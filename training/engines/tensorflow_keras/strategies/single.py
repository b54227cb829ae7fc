"""Strategy `single`: one process, one replica; the measure for all others."""

from __future__ import annotations

import contextlib
from typing import Any

import tensorflow as tf

from training.engines.tensorflow_keras.rows import Batch
from training.engines.tensorflow_keras.strategies.keras_fit import KerasFit
from training.engines.tensorflow_keras.strategies.strategy import MakeDataset, OneProcess
from training.run.rank import RankContext
from training.spec.train import TrainSpec


class Single(KerasFit, OneProcess):
    """TensorFlow's default: whatever the first device is."""

    replicas = 1
    loss_scale = 1

    def __init__(self, ctx: RankContext) -> None: ...

    def scope(self) -> contextlib.AbstractContextManager[Any]:
        """Return a context that does nothing."""
        return contextlib.nullcontext()

    def adopt(self, model: Any, train: TrainSpec, example: Batch) -> None:
        """Do nothing: whatever Keras can do works here."""

    def distribute(self, make_dataset: MakeDataset) -> Any:
        """Return the dataset of the only replica."""
        return make_dataset(0, 1)

    def gather(self, values: Any) -> Any:
        """Return `values` as the only row."""
        return tf.expand_dims(values, 0)

    def needs_own_evaluation_model(self) -> bool:
        """Return False: the trained model itself can."""
        return False
