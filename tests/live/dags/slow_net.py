"""A small net that trains until step `hold_step` and goes on when the file `go` is in the run folder."""

import os
import time
from pathlib import Path

import keras
import tensorflow as tf

from training.models.mlp import build_model as build_mlp


@keras.saving.register_keras_serializable("live")
class Held(keras.Sequential):
    """Asks before each step whether to go on."""

    hold_step = 0

    def compute_loss(self, *args, **kwargs):
        """Ask, then compute."""
        step = tf.numpy_function(self.wait, [tf.cast(self.optimizer.iterations, tf.int64)], tf.int64)
        with tf.control_dependencies([step]):
            return super().compute_loss(*args, **kwargs)

    def wait(self, step):
        """Take a moment, so that each step is told; from `hold_step` on, wait for the file."""
        time.sleep(0.1)
        go = Path(os.environ["GANGER_JOB_DIR"]).parents[1] / "go"
        while step >= self.hold_step and not go.exists():
            time.sleep(0.02)
        return step


def build_model(hold_step):
    """Return a compiled model."""
    plain = build_mlp(hidden=[16])
    model = Held(plain.layers)
    model.hold_step = hold_step
    model.compile(plain.optimizer, plain.loss, metrics=["accuracy"])
    return model
