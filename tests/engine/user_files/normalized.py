"""A model file of somebody whose batch normalization counts the rows of all replicas, or of each by itself."""

import keras


def build_model(synchronized=False):
    """Return a compiled model, normalization first: what it counts then depends on the rows alone."""
    layers = [keras.Input((12,)), keras.layers.BatchNormalization(synchronized=synchronized, name="norm")]
    model = keras.Sequential([*layers, keras.layers.Dense(1, activation="sigmoid")])
    model.compile(keras.optimizers.SGD(0.1, momentum=0.9), loss="binary_crossentropy")
    return model
