"""The perceptron that ships, whose rank 1 fails in mid-epoch in each of three attempts (K14, K17)."""

import os
import signal

import keras
import tensorflow as tf

from training.models.mlp import build_model as build_mlp

ATTEMPT = os.environ["GANGER_ATTEMPT"]
#: Attempt to the step before which it fails, and to what it raises; in the first it is killed.
STEPS = {"1": 33, "2": 38, "3": 43}
WORDS = {"2": "the feature server is away", "3": "a bug: 'task 1 is missing'"}


def fail(step):
    """Fail in the way of this attempt, if this is the process and the time is there."""
    if os.environ["GANGER_RANK"] == "1" and step == STEPS.get(ATTEMPT):
        if ATTEMPT == "1":
            os.kill(os.getpid(), signal.SIGKILL)
        raise ValueError(WORDS[ATTEMPT])
    return step


@keras.saving.register_keras_serializable("user")
class FailsThrice(keras.Sequential):
    """Asks before each step whether to fail."""

    def compute_loss(self, *args, **kwargs):
        """Ask, then compute."""
        step = tf.numpy_function(fail, [tf.cast(self.optimizer.iterations, tf.int64)], tf.int64)
        with tf.control_dependencies([step]):
            return super().compute_loss(*args, **kwargs)


def build_model(**params):
    """Return a compiled model."""
    plain = build_mlp(**params)
    model = FailsThrice(plain.layers)
    model.compile(plain.optimizer, plain.loss, metrics=["accuracy"])
    return model
