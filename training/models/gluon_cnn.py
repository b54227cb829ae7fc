"""A small convolutional network of Gluon for images, given as rows of pixels or as they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mxnet import gluon
from mxnet.gluon import nn


class CNN(gluon.HybridBlock):  # type: ignore[misc]  # MXNet ships no types
    """Convolutions with batch normalization under `features`, and the dense layers, `output`."""

    def __init__(self, image_shape: Sequence[int], filters: Sequence[int], hidden: int, classes: int) -> None:
        super().__init__()
        self._image_shape = tuple(image_shape)
        with self.name_scope():
            self.features = nn.HybridSequential()
            for index, count in enumerate(filters):
                self.features.add(nn.Conv2D(count, kernel_size=3, padding=1, use_bias=False))
                self.features.add(nn.BatchNorm(), nn.Activation("relu"))
                if index < len(filters) - 1:
                    self.features.add(nn.MaxPool2D(pool_size=2))
            self.output = nn.HybridSequential()
            self.output.add(nn.Flatten(), nn.Dense(hidden, activation="relu"), nn.Dense(classes))

    def hybrid_forward(self, F: Any, x: Any) -> Any:  # noqa: N803 - Gluon calls it so
        """Return logits, shape (rows, classes)."""
        height, width, channels = self._image_shape
        images = F.transpose(F.reshape(x, shape=(-1, height, width, channels)), axes=(0, 3, 1, 2))
        return self.output(self.features(images))


def build_model(
    image_shape: Sequence[int] = (8, 8, 1), filters: Sequence[int] = (16, 32), hidden: int = 64, classes: int = 10
) -> gluon.HybridBlock:
    """Return a classifier.

    Batch normalization makes a step depend on how its rows are shared out: the statistics are those of each device.

    Args:
        image_shape: Height, width and channels. Flat rows, such as the 64 pixels of `digits`, are brought into this
            shape.
        filters: Filters of each convolution; each but the last is followed by halving height and width.
        hidden: Units of the dense layer.
        classes: Number of classes; labels are 0 to `classes` - 1.
    """
    return CNN(image_shape, filters, hidden, classes)


def build_trainer(params: Any, learning_rate: float = 0.001) -> gluon.Trainer:
    """Return the trainer of `params`.

    Args:
        params: The block's parameters.
        learning_rate: Size of Adam's updates.
    """
    return gluon.Trainer(params, "adam", {"learning_rate": learning_rate})
