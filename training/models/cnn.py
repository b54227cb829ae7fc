"""A small convolutional network for images, given as rows of pixels or as they are."""

from __future__ import annotations

from collections.abc import Sequence

import keras
from keras import layers


def build_model(
    image_shape: Sequence[int] = (8, 8, 1),
    filters: Sequence[int] = (16, 32),
    hidden: int = 64,
    classes: int = 10,
    learning_rate: float = 0.001,
) -> keras.Model:
    """Return a compiled classifier.

    Args:
        image_shape: Height, width and channels. Flat rows, such as the 64 pixels of `digits`, are brought into this
            shape.
        filters: Filters of each convolution; each but the last is followed by halving height and width.
        hidden: Units of the dense layer.
        classes: Number of classes; labels are 0 to `classes` - 1.
        learning_rate: Size of Adam's updates.
    """
    model = keras.Sequential(name="cnn")
    model.add(layers.Reshape(tuple(image_shape)))
    for index, count in enumerate(filters):
        model.add(layers.Conv2D(count, kernel_size=3, padding="same", activation="relu"))
        if index < len(filters) - 1:
            model.add(layers.MaxPooling2D(pool_size=2))
    model.add(layers.Flatten())
    model.add(layers.Dense(hidden, activation="relu"))
    model.add(layers.Dense(classes))

    model.compile(
        optimizer=keras.optimizers.Adam(learning_rate),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    return model
