"""What must be set before TensorFlow does anything, and so before the user's code is imported (K03, K12)."""

from __future__ import annotations

import keras
import numpy as np
import tensorflow as tf

from training.errors import PreflightError
from training.run.rank import RankContext


def prepare_runtime(ctx: RankContext, seed: int) -> None:
    """Set threads and seeds of this process.

    Raises:
        PreflightError: Keras does not compute with TensorFlow here, or TensorFlow was already started by other code.
    """
    if keras.backend.backend() != "tensorflow":
        raise PreflightError(
            f"Keras must compute with TensorFlow. Received: the backend {keras.backend.backend()}. "
            "Unset KERAS_BACKEND and the backend in ~/.keras/keras.json."
        )
    try:
        tf.config.threading.set_intra_op_parallelism_threads(ctx.threads)
        # Two at least: a collective that waits for its peers must not be what keeps the input from being read.
        tf.config.threading.set_inter_op_parallelism_threads(max(2, ctx.threads))
    except RuntimeError as error:
        raise PreflightError(f"threads must be set before TensorFlow starts. Received: {error}") from error
    keras.utils.set_random_seed(seed)


def list_versions() -> dict[str, str]:
    """Return the versions that decide about results."""
    return {"tensorflow": tf.__version__, "keras": keras.__version__, "numpy": np.__version__}


def list_devices() -> tuple[str, ...]:
    """Return the names of this process's devices, such as `CPU:0`; a chief sees those of its servers, too."""
    here = tf.DeviceSpec.from_string(tf.constant(0).device)
    every = [tf.DeviceSpec.from_string(device.name) for device in tf.config.list_logical_devices()]
    own = [each for each in every if each.job in (None, here.job) and each.task in (None, here.task)]
    return tuple(f"{each.device_type}:{each.device_index}" for each in own)
