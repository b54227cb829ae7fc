"""A model whose optimizer updates at every second step."""

import keras


def build_model():
    """Return a compiled model for two classes."""
    model = keras.Sequential([keras.layers.Dense(1, activation="sigmoid")])
    model.compile(keras.optimizers.SGD(0.1, gradient_accumulation_steps=2), loss="binary_crossentropy")
    return model
