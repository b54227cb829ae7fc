"""Networks whose shapes meet their rows, or do not; and one that adds to its loss."""

import keras
from keras import layers


def build_model(kind):
    """Return a compiled classifier of 10 classes."""
    chain = {
        "whole": [layers.Dense(8), layers.Dense(10)],
        "narrow": [layers.Input((30,)), layers.Dense(8), layers.Dense(10)],
        "broken": [layers.Dense(8), layers.Reshape((16,)), layers.Dense(10)],
        "moving": [
            layers.Dense(8),
            layers.BatchNormalization(name="norm"),
            layers.Dropout(0.1, name="drop"),
            layers.Dense(10),
        ],
        "penalised": [layers.Dense(8, activity_regularizer="l2", name="held"), layers.Dense(10)],
    }[kind]
    model = keras.Sequential(chain)
    if kind == "broken":
        model.build((None, 64))
    model.compile("sgd", keras.losses.CategoricalCrossentropy(from_logits=True))
    return model
