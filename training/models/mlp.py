"""A multi-layer perceptron for rows of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import keras
from keras import layers


def build_model(
    hidden: Sequence[int] = (128,),
    classes: int = 10,
    activation: str = "relu",
    dropout: float = 0.0,
    optimizer: Literal["sgd", "momentum", "adam"] = "adam",
    learning_rate: float = 0.001,
) -> keras.Model:
    """Return a compiled classifier.

    Args:
        hidden: Units of each hidden layer.
        classes: Number of classes; labels are 0 to `classes` - 1.
        activation: Activation of the hidden layers.
        dropout: Share of the units that each hidden layer drops while training.
        optimizer: How weights are updated.
        learning_rate: Size of the updates.
    """
    model = keras.Sequential(name="mlp")
    for units in hidden:
        model.add(layers.Dense(units, activation=activation))
        if dropout:
            model.add(layers.Dropout(dropout))
    model.add(layers.Dense(classes))

    model.compile(
        optimizer=choose_optimizer(optimizer, learning_rate),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    return model


def choose_optimizer(name: str, learning_rate: float) -> keras.Optimizer:
    """Return the optimizer called `name`.

    Raises:
        ValueError: There is no optimizer of that name.
    """
    match name:
        case "sgd":
            return keras.optimizers.SGD(learning_rate)
        case "momentum":
            return keras.optimizers.SGD(learning_rate, momentum=0.9)
        case "adam":
            return keras.optimizers.Adam(learning_rate)
    raise ValueError(f"optimizer must be sgd, momentum or adam. Received: {name!r}.")
