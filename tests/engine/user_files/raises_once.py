"""The perceptron that ships, with a bug that shows in mid-epoch, on rank 1 at the first attempt (K17)."""

import os

import keras
import tensorflow as tf

from training.models.mlp import build_model as build_mlp

STEP = 33


def fail(step):
    """Raise, if this is the process and the time is there."""
    if os.environ["GANGER_RANK"] == "1" and os.environ["GANGER_ATTEMPT"] == "1" and step == STEP:
        raise ValueError("the feature server has sent column 'task 1 is missing'")
    return step


@keras.saving.register_keras_serializable("user")
class RaisesOnce(keras.Sequential):
    """Asks before each step whether to fail."""

    def compute_loss(self, *args, **kwargs):
        """Ask, then compute."""
        step = tf.numpy_function(fail, [tf.cast(self.optimizer.iterations, tf.int64)], tf.int64)
        with tf.control_dependencies([step]):
            return super().compute_loss(*args, **kwargs)


def build_model(**params):
    """Return a compiled model."""
    plain = build_mlp(**params)
    model = RaisesOnce(plain.layers)
    model.compile(plain.optimizer, plain.loss, metrics=["accuracy"])
    return model
