"""What strategies have in common that keep several replicas in one process: `mirrored`, `central_storage`, `tpu`."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import tensorflow as tf

from training.engines.tensorflow_keras.rows import Batch
from training.engines.tensorflow_keras.shims.summed_gradients import sum_before_use
from training.engines.tensorflow_keras.strategies.keras_fit import KerasFit
from training.engines.tensorflow_keras.strategies.own_values import read_value, settle_own_values
from training.engines.tensorflow_keras.strategies.strategy import MakeDataset, OneProcess
from training.errors import PreflightError
from training.spec.train import TrainSpec


class ReplicasOnDevices(KerasFit, OneProcess):
    """A replica on each device of this process.

    Args:
        strategy: The `tf.distribute.Strategy`.
    """

    def __init__(self, strategy: Any) -> None:
        self._strategy = strategy
        self.replicas = self.loss_scale = int(strategy.num_replicas_in_sync)

    def scope(self) -> AbstractContextManager[Any]:
        """Return the scope in which variables are made on all devices."""
        scope: AbstractContextManager[Any] = self._strategy.scope()
        return scope

    def adopt(self, model: Any, train: TrainSpec, example: Batch) -> None:
        """Have the optimizer clip and judge gradients of the global batch."""
        super().adopt(model, train, example)
        sum_before_use(model.optimizer)

    def distribute(self, make_dataset: MakeDataset) -> Any:
        """Return the global batches; TensorFlow cuts each into consecutive equal parts, as ranks do (ADR 3)."""
        return self._strategy.experimental_distribute_dataset(make_dataset(0, 1))

    def gather(self, values: Any) -> Any:
        """Return `values` of all replicas, one row each."""
        return tf.distribute.get_replica_context().all_gather(tf.expand_dims(values, 0), axis=0)

    def settle(self, model: Any) -> None:
        """Set moving averages and the like to their mean over devices."""
        settle_own_values(model, lambda values: values, self._average)

    def _average(self, variable: Any) -> Any:
        values = self._strategy.experimental_local_results(variable)
        return np.mean([read_value(value).astype(np.float64) for value in values], axis=0)

    def needs_own_evaluation_model(self) -> bool:
        """Return True: evaluation would be cut over replicas, where a metric that is no mean goes wrong."""
        return True


def make_devices(count: int) -> list[str]:
    """Return the names of `count` devices, such as `GPU:0` or `CPU:1`; call it before TensorFlow does anything else.

    Raises:
        PreflightError: There are fewer GPUs, or TensorFlow was already started by other code (K12).
    """
    gpus = len(tf.config.list_physical_devices("GPU"))
    if gpus:
        if gpus < count:
            raise PreflightError(
                f"cluster.devices must be at most the GPUs that a process sees. Received: {count} of {gpus}."
            )
        return [f"GPU:{index}" for index in range(count)]
    cpu = tf.config.list_physical_devices("CPU")[0]
    try:
        tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * count)
    except RuntimeError as error:
        raise PreflightError(f"devices must be set before TensorFlow starts. Received: {error}") from error
    if count > 1:
        print(f"no GPU here: the replicas share the CPU as {count} logical devices", flush=True)
    return [f"CPU:{index}" for index in range(count)]
