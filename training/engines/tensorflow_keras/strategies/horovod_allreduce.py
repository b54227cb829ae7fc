"""Strategy `horovod`: one replica in each of several processes; Horovod averages the gradients.

https://horovod.readthedocs.io/en/stable/keras.html. TensorFlow knows nothing of the other ranks.
"""

from __future__ import annotations

import contextlib
from typing import Any

import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

from training.engines.tensorflow_keras.rows import Batch
from training.engines.tensorflow_keras.shims.horovod_optimizer import combine_gradients
from training.engines.tensorflow_keras.strategies.keras_fit import KerasFit
from training.engines.tensorflow_keras.strategies.own_values import settle_own_values
from training.engines.tensorflow_keras.strategies.strategy import MakeDataset, Vector
from training.errors import LaunchError
from training.run.rank import RankContext
from training.spec.train import HorovodTrain, TrainSpec


class Horovod(KerasFit):
    """Waits, when made, until all ranks have joined.

    Args:
        ctx: What the launcher made of this process.

    Raises:
        LaunchError: The gang has another size than the plan says.
    """

    loss_scale = 1

    def __init__(self, ctx: RankContext) -> None:
        hvd.init()
        self.replicas = int(hvd.size())
        self._rank = int(hvd.rank())
        if (self._rank, self.replicas) != (ctx.rank, ctx.world_size):
            raise LaunchError(
                f"Horovod must count this as rank {ctx.rank} of {ctx.world_size}. "
                f"Received: rank {self._rank} of {self.replicas}."
            )

    def scope(self) -> contextlib.AbstractContextManager[Any]:
        """Return a context that does nothing: each rank has ordinary variables."""
        return contextlib.nullcontext()

    def adopt(self, model: Any, train: TrainSpec, example: Batch) -> None:
        """Have the optimizer average gradients over ranks before it uses them."""
        options = train if isinstance(train, HorovodTrain) else HorovodTrain(engine="horovod")
        combine_gradients(model, compression=options.compression, reduction=options.reduction)

    def distribute(self, make_dataset: MakeDataset) -> Any:
        """Return the rank's own slices."""
        return make_dataset(self._rank, self.replicas)

    def gather(self, values: Any) -> Any:
        """Return `values` of all ranks, one row each, by one collective."""
        return hvd.allgather(tf.expand_dims(values, 0), name="gather_logs")

    def add_up(self, values: Vector) -> Vector:
        """Return the sum over ranks by one collective."""
        total: Vector = hvd.allreduce(tf.constant(values), op=hvd.Sum, name="add_up").numpy()
        return total

    def pool(self, values: Vector) -> Vector:
        """Return the sum over ranks: each has a metric of its own rows."""
        return self.add_up(values)

    def portion(self, values: Vector) -> Vector:
        """Return an equal part."""
        return values / self.replicas

    def unite_metrics(self, model: Any) -> dict[str, float]:
        """Add up what each rank has counted, then compute the metrics: exact also for AUC, which is no mean."""
        for variable in model.metrics_variables:
            variable.assign(self.add_up(variable.numpy().astype(np.float64)).astype(variable.dtype))
        return {name: float(value) for name, value in model.get_metrics_result().items()}

    def settle(self, model: Any) -> None:
        """Set moving averages and the like to their mean over ranks."""
        settle_own_values(model, lambda values: self.add_up(values) / self.replicas)

    def needs_own_evaluation_model(self) -> bool:
        """Return False: the trained model is an ordinary one."""
        return False
