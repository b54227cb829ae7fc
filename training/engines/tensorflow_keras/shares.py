"""Equal parts of a batch, as replicas take them: consecutive rows (ADR 3)."""

from __future__ import annotations

from typing import Any

import tensorflow as tf


def cut(batch: Any, index: int, count: int) -> Any:
    """Return part `index` of `count` of a batch of tensors whose number of rows is in their shapes."""

    def cut_leaf(leaf: Any) -> Any:
        rows = leaf.shape[0] // count
        return leaf[index * rows : (index + 1) * rows]

    return tf.nest.map_structure(cut_leaf, batch)
