"""A multi-layer perceptron of Gluon for rows of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from mxnet import gluon
from mxnet.gluon import nn


class MLP(gluon.HybridBlock):  # type: ignore[misc]  # MXNet ships no types
    """Hidden layers under `hidden`, and the layer of the classes, `output`."""

    def __init__(self, hidden: Sequence[int], classes: int, activation: str, dropout: float) -> None:
        super().__init__()
        with self.name_scope():
            self.hidden = nn.HybridSequential()
            for units in hidden:
                self.hidden.add(nn.Dense(units, activation=activation))
                if dropout:
                    self.hidden.add(nn.Dropout(dropout))
            self.output = nn.Dense(classes)

    def hybrid_forward(self, F: Any, x: Any) -> Any:  # noqa: N803 - Gluon calls it so
        """Return logits, shape (rows, classes)."""
        return self.output(self.hidden(x))


def build_model(
    hidden: Sequence[int] = (128,), classes: int = 10, activation: str = "relu", dropout: float = 0.0
) -> gluon.HybridBlock:
    """Return a classifier; Ganger initializes it, finds out the width of the rows, and hybridizes it.

    Args:
        hidden: Units of each hidden layer.
        classes: Number of classes; labels are 0 to `classes` - 1.
        activation: Activation of the hidden layers.
        dropout: Share of the units that each hidden layer drops while training.
    """
    return MLP(hidden, classes, activation, dropout)


def build_trainer(
    params: Any, optimizer: Literal["sgd", "momentum", "adam"] = "adam", learning_rate: float = 0.001
) -> gluon.Trainer:
    """Return the trainer of `params`.

    Args:
        params: The block's parameters.
        optimizer: How weights are updated.
        learning_rate: Size of the updates.
    """
    momentum = {"momentum": 0.9} if optimizer == "momentum" else {}
    name = "sgd" if momentum else optimizer
    return gluon.Trainer(params, name, {"learning_rate": learning_rate, **momentum})
