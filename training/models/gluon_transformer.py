"""A small transformer encoder of Gluon: rows are read as sequences of tokens, such as the lines of an image.

A. Vaswani et al., "Attention Is All You Need", 2017, https://arxiv.org/abs/1706.03762, with the normalization in front
(R. Xiong et al., 2020, https://arxiv.org/abs/2002.04745).
"""

from __future__ import annotations

from typing import Any, Literal

import mxnet as mx
from mxnet import gluon
from mxnet.gluon import nn


class EncoderLayer(gluon.HybridBlock):  # type: ignore[misc]  # MXNet ships no types
    """Attention among tokens, then a network on each token; both add to what they get."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self._heads = heads
        with self.name_scope():
            self.before_attention = nn.LayerNorm(in_channels=width)
            self.queries_keys_values = nn.Dense(3 * width, flatten=False, in_units=width)
            self.projection = nn.Dense(width, flatten=False, in_units=width)
            self.before_network = nn.LayerNorm(in_channels=width)
            self.network = nn.HybridSequential()
            self.network.add(nn.Dense(4 * width, activation="relu", flatten=False, in_units=width))
            self.network.add(nn.Dense(width, flatten=False, in_units=4 * width))
            self.dropout = nn.Dropout(dropout)

    def hybrid_forward(self, F: Any, x: Any) -> Any:  # noqa: N803 - Gluon calls it so
        """Return tokens, shape (rows, tokens, width), as they came."""
        x = x + self.dropout(self.projection(self._attend(F, self.before_attention(x))))
        return x + self.dropout(self.network(self.before_network(x)))

    def _attend(self, F: Any, x: Any) -> Any:  # noqa: N803
        queries, keys, values = F.split(self.queries_keys_values(x), num_outputs=3, axis=2)
        queries, keys, values = (self._split_heads(F, part) for part in (queries, keys, values))
        scores = F.batch_dot(F.contrib.div_sqrt_dim(queries), keys, transpose_b=True)
        attended = F.batch_dot(F.softmax(scores, axis=-1), values)  # (rows * heads, tokens, width / heads)
        attended = F.reshape(attended, shape=(-1, self._heads, 0, 0), reverse=True)
        return F.reshape(F.transpose(attended, axes=(0, 2, 1, 3)), shape=(0, 0, -1))

    def _split_heads(self, F: Any, x: Any) -> Any:  # noqa: N803
        x = F.transpose(F.reshape(x, shape=(0, 0, self._heads, -1)), axes=(0, 2, 1, 3))
        return F.reshape(x, shape=(-3, 0, 0))


class Transformer(gluon.HybridBlock):  # type: ignore[misc]
    """Tokens get a place (`embedding`, `positions`), go through `layers`, and their mean through `output`."""

    def __init__(self, tokens: int, width: int, layers: int, heads: int, classes: int, dropout: float) -> None:
        super().__init__()
        self._tokens = tokens
        with self.name_scope():
            self.embedding = nn.Dense(width, flatten=False)
            self.positions = self.params.get("positions", shape=(1, tokens, width), init=mx.init.Normal(0.02))
            self.layers = nn.HybridSequential()
            for _ in range(layers):
                self.layers.add(EncoderLayer(width, heads, dropout))
            self.normalization = nn.LayerNorm(in_channels=width)
            self.output = nn.Dense(classes, in_units=width)

    def hybrid_forward(self, F: Any, x: Any, positions: Any) -> Any:  # noqa: N803
        """Return logits, shape (rows, classes)."""
        tokens = self.embedding(F.reshape(x, shape=(0, self._tokens, -1)))
        encoded = self.normalization(self.layers(F.broadcast_add(tokens, positions)))
        return self.output(F.mean(encoded, axis=1))


def build_model(
    tokens: int = 8, width: int = 32, layers: int = 2, heads: int = 4, classes: int = 10, dropout: float = 0.0
) -> gluon.HybridBlock:
    """Return a classifier.

    Args:
        tokens: Tokens that each row is cut into; the 64 pixels of `digits` are 8 lines.
        width: Numbers that stand for a token; a multiple of `heads`.
        layers: Encoder layers.
        heads: Attention heads of each.
        classes: Number of classes; labels are 0 to `classes` - 1.
        dropout: Share of the numbers that each layer drops while training.

    Raises:
        ValueError: `width` is no multiple of `heads`.
    """
    if width % heads:
        raise ValueError(f"width must be a multiple of heads, {heads}. Received: {width}.")
    return Transformer(tokens, width, layers, heads, classes, dropout)


def build_trainer(
    params: Any, optimizer: Literal["momentum", "adam"] = "adam", learning_rate: float = 0.001
) -> gluon.Trainer:
    """Return the trainer of `params`.

    Args:
        params: The block's parameters.
        optimizer: How weights are updated.
        learning_rate: Size of the updates.
    """
    if optimizer == "momentum":
        return gluon.Trainer(params, "sgd", {"learning_rate": learning_rate, "momentum": 0.9})
    return gluon.Trainer(params, "adam", {"learning_rate": learning_rate})
