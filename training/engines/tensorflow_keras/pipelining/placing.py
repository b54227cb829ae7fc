"""Where the variables of a model in stages are: each beside its stage, and what the optimizer knows of it, too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from training.engines.tensorflow_keras.pipelining.splitting import Stage
from training.engines.tensorflow_keras.shims.placed_variables import (
    Beside,
    find_moved_weights,
    move_variable,
    update_beside_weights,
)


def place_model(model: Any, stages: Sequence[Stage], devices: Sequence[str], beside: Beside) -> None:
    """Put the variables of a built `model` where its stages are; metrics go to the last one, which has the outputs.

    The optimizer's own, such as its count of updates, stay where they are.

    Args:
        model: Built and compiled.
        stages: Its stages.
        devices: The device of each stage.
        beside: The optimizer's variables that were made for a weight, with that weight.
    """
    places = {
        id(variable): device for stage, device in zip(stages, devices, strict=True) for variable in stage.variables
    }
    for variable in model.variables:
        move_variable(variable, places[id(variable)])
    own = {id(variable) for variable in model.optimizer.variables}
    for variable, weight in beside:
        if id(variable) in own:
            move_variable(variable, places[id(weight)])
    for variable in model.metrics_variables:
        move_variable(variable, devices[-1])
    find_moved_weights(model.optimizer)
    update_beside_weights(model.optimizer)


def follow_largest_input(graph: Any) -> Callable[[Any], str]:
    """Return a device function: an operation that nobody has placed goes where the largest of what it takes is.

    So that clipping, weight decay and averages of weights, of which Keras knows no place, send no gradient around.

    Args:
        graph: The graph that is being traced.
    """
    captured: dict[int, str] = {}

    def find_device(tensor: Any) -> str:
        if tensor.dtype == tf.resource:
            if id(tensor) not in captured:
                captured.update({id(inner): str(outer.device) for outer, inner in graph.captures})
            return captured.get(id(tensor), "")
        handles = (taken for taken in tensor.op.inputs if taken.dtype == tf.resource)
        return str(tensor.op.device) or next(map(find_device, handles), "")  # what reads a variable is beside it

    def choose(operation: Any) -> str:
        taken = [tensor for tensor in operation.inputs if find_device(tensor)]
        if operation.device or not taken:
            return str(operation.device)
        return find_device(max(taken, key=_measure))

    return choose


def _measure(tensor: Any) -> float:
    """Return the bytes of a tensor; a variable outweighs all, since it cannot go elsewhere."""
    if tensor.dtype == tf.resource:
        return float("inf")
    return float(tensor.dtype.size * (tensor.shape.num_elements() or 0))
