"""The devices of this process that replicas are put on: GPUs, or parts of the CPU where there are none."""

from __future__ import annotations

import tensorflow as tf

from training.errors import PreflightError


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
