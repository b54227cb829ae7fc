"""A model that learns nothing, and tells by its metrics which rows it was given."""

import keras
from keras import ops


@keras.saving.register_keras_serializable("user")
def label(y, predicted):
    """Return the labels, whose mean is told."""
    return y


@keras.saving.register_keras_serializable("user")
def squared_label(y, predicted):
    """Return the squared labels."""
    return ops.square(y)


def build_model():
    """Return a compiled model."""
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.0), loss="mse", metrics=[label, squared_label])
    return model
