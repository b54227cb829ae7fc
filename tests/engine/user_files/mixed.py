"""A model file of somebody: a subclass of keras.Model, in half precision, with a loss of its own."""

import keras
import numpy as np
import tensorflow as tf
from keras import ops

BATCH, STEPS = 12, 10
#: Rank 1 of 2 has it in step 6. Times a loss scale of 2**15, its gradient is no half-precision number; the others' are.
OUTLIER = 5 * BATCH + 9


@keras.saving.register_keras_serializable("user")
def own_loss(y, predicted):
    """Return the squared error."""
    return ops.mean(ops.square(ops.cast(y, "float32") - ops.cast(predicted, "float32")), axis=-1)


@keras.saving.register_keras_serializable("user")
class Net(keras.Model):
    """Two layers; what the first one takes is known from the first batch alone."""

    def __init__(self, units, **options):
        """Make the layers."""
        super().__init__(**options)
        self.units = units
        self.hidden = keras.layers.Dense(units, "tanh", dtype=self.dtype_policy)
        self.head = keras.layers.Dense(1, dtype=self.dtype_policy)

    def call(self, inputs):
        """Compute."""
        return self.head(self.hidden(inputs))

    def get_config(self):
        """Return what the model is made again from."""
        return {**super().get_config(), "units": self.units}


def build_model(policy, **clip):
    """Return a compiled model; with mixed_float16, Keras puts a LossScaleOptimizer around the optimizer."""
    model = Net(8, dtype=policy)
    model.compile(keras.optimizers.SGD(0.1, momentum=0.9, **clip), loss=own_loss)
    return model


def build_dataset(split, batch_size):
    """Return rows that are always in this order."""
    if split == "validation":
        return None
    x = np.random.default_rng(0).normal(size=(BATCH * STEPS, 5)).astype(np.float32)
    y = x[:, :1] / 10
    y[OUTLIER] = 50
    return tf.data.Dataset.from_tensor_slices((x, y)).batch(batch_size, drop_remainder=True)
