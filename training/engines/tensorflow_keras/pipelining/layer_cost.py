"""What a layer costs, estimated from its weights: every number of a kernel is multiplied once at each position."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import keras

Shape = Sequence[int | None]


def estimate_cost(layer: Any, taken: Shape, made: Shape) -> float:
    """Return the multiplications and additions of a forward for one row.

    Args:
        layer: A built layer, or an operation.
        taken: Shape of what it takes, rows first.
        made: Shape of what it makes, rows first.
    """
    if isinstance(layer, keras.Function):  # a model inside of the model
        nodes = (node for nodes in layer._nodes_by_depth.values() for node in nodes if not node.is_input)
        return sum(estimate_cost(each.operation, each.input_tensors[0].shape, each.outputs[0].shape) for each in nodes)
    if isinstance(layer, keras.Sequential):
        return estimate_cost(layer._functional, taken, made)
    numbers = _count(made[1:])
    if isinstance(layer, keras.layers.Embedding):
        return float(numbers)  # it looks up
    if isinstance(layer, keras.layers.RNN):
        positions = _count(taken[1:-1])
    elif getattr(layer, "data_format", None) == "channels_first":
        positions = _count(made[2:])
    else:
        positions = _count(made[1:-1])
    kernels = sum(math.prod(weight.shape) for weight in getattr(layer, "weights", ()) if len(weight.shape) > 1)
    return float(2 * positions * kernels + numbers)


def _count(sizes: Shape) -> int:
    return math.prod(size or 1 for size in sizes)
