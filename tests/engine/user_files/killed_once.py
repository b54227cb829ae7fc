"""The perceptron that ships, in a process that kills itself in mid-epoch, on rank 1 at the first attempt (K14)."""

import os
import signal

import keras
import tensorflow as tf

from training.models.mlp import build_model as build_mlp

STEP = 33


def kill(step):
    """Kill this process, if it is the one and the time is there."""
    if os.environ["GANGER_RANK"] == "1" and os.environ["GANGER_ATTEMPT"] == "1" and step == STEP:
        os.kill(os.getpid(), signal.SIGKILL)
    return step


@keras.saving.register_keras_serializable("user")
class KilledOnce(keras.Sequential):
    """Asks before each step whether to die."""

    def compute_loss(self, *args, **kwargs):
        """Ask, then compute."""
        step = tf.numpy_function(kill, [tf.cast(self.optimizer.iterations, tf.int64)], tf.int64)
        with tf.control_dependencies([step]):
            return super().compute_loss(*args, **kwargs)


def build_model(**params):
    """Return a compiled model."""
    plain = build_mlp(**params)
    model = KilledOnce(plain.layers)
    model.compile(plain.optimizer, plain.loss, metrics=["accuracy"])
    return model
