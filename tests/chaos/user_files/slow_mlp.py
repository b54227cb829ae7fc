"""The perceptron that ships, slow enough to be disturbed, and a user's mistakes where `CHAOS_MISTAKE` asks for one.

`CHAOS_MISTAKE` holds `WHAT RANK STEP`; `CHAOS_STEP_S` the seconds that a step waits; `CHAOS_SLOW_AFTER` holds
`STEP SECONDS`, those of the steps after a step.
"""

import os
import time

import keras
import tensorflow as tf

from training.models.mlp import build_model as build_mlp


def wait_or_err(iterations):
    """Wait a little before each step, make the mistake that is asked for, and return what the loss is multiplied by."""
    slow_after, slow_s = os.environ.get("CHAOS_SLOW_AFTER", "9999 0").split()
    time.sleep(float(slow_s if iterations >= int(slow_after) else os.environ.get("CHAOS_STEP_S", "0.06")))
    what, rank, step = os.environ.get("CHAOS_MISTAKE", "none -1 -1").split()
    if rank != os.environ["GANGER_RANK"] or int(step) != iterations + 1:
        return 1.0
    match what:
        case "exits":
            os._exit(7)
        case "raises":
            raise ValueError("no rows today")
        case "out_of_memory":
            raise MemoryError("no memory today")
    return float("nan")


@keras.saving.register_keras_serializable("user")
class SlowMLP(keras.Sequential):
    """Waits before each training step."""

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        """Wait, then compute."""
        if not training:
            return super().compute_loss(x, y, y_pred, sample_weight, training)
        factor = tf.numpy_function(wait_or_err, [tf.cast(self.optimizer.iterations, tf.int64)], tf.float64)
        factor.set_shape(())
        with tf.control_dependencies([factor]):
            loss = super().compute_loss(x, y, y_pred, sample_weight, training)
        return loss * tf.cast(factor, loss.dtype)


def build_model(**params):
    """Return a compiled model."""
    plain = build_mlp(**params)
    model = SlowMLP(plain.layers)
    model.compile(plain.optimizer, plain.loss, metrics=["accuracy"])
    return model
