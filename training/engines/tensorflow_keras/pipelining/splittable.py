"""What a model must be like to be trained in stages; each refusal names what prevents it.

What is trained to other weights than the unsplit model's, without a word, would be worse than any of these refusals.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import keras
from keras.src.backend.common.masking import get_keras_mask
from keras.src.models.functional import Functional

from training.errors import SpecError, spec_error

_FIELD = "model.entrypoint"


def check_own_step(model: Any) -> None:
    """Check that a step of `model` is what Keras makes of its layers, its loss and its optimizer.

    Raises:
        SpecError: It has a training step, a loss or a scale of its loss of its own, or no loss.
    """
    for name in ("train_step", "compute_loss", "compute_metrics"):
        if getattr(type(model), name) is not getattr(keras.Model, name):
            raise refuse(
                f"must leave {name} to Keras to be split into stages. Received: {type(model).__name__}, with its own."
            )
    if isinstance(model.optimizer, keras.optimizers.LossScaleOptimizer):
        raise refuse(
            "must not scale its loss to be split into stages. Received: a LossScaleOptimizer, as mixed_float16 has it.",
            "Use mixed_bfloat16.",
        )
    if model._compile_loss is None:
        raise refuse(
            "must be compiled with a loss to be split into stages. Received: none.",
            "Give model.compile one, such as loss='mse'.",
        )


def check_own_call(model: Any) -> None:
    """Check that a functional or Sequential `model` calls its layers as its graph says.

    Raises:
        SpecError: Its class has a `call` of its own, of which the stages would know nothing.
    """
    if type(model).call not in (Functional.call, keras.Sequential.call):
        raise refuse(
            f"must leave call to Keras to be split into stages. Received: {type(model).__name__}, with its own.",
            "Compute it in a layer, or use another strategy.",
        )


def check_nodes(nodes: Iterable[Any]) -> None:
    """Check that each layer of a graph computes once, and hands on nothing but its output.

    Raises:
        SpecError: One does not.
    """
    seen: set[int] = set()
    for node in nodes:
        layer = node.operation
        if id(layer) in seen:
            raise refuse(f"must use each layer once to be split into stages. Received: {layer.name}, used twice.")
        seen.add(id(layer))
        if any(get_keras_mask(tensor) is not None for tensor in node.outputs):
            raise refuse(
                f"must have no masks to be split into stages, since they do not travel. Received: one of {layer.name}."
            )


def check_output(node: Any) -> None:
    """Check that a gradient can come back where a model is cut behind `node`.

    Raises:
        SpecError: It cannot.
    """
    if not keras.backend.is_float_dtype(node.outputs[0].dtype):
        raise refuse(
            "must be cut where fractions go on, since gradients come back there. "
            f"Received: a cut behind {node.operation.name}, which gives {node.outputs[0].dtype}.",
            "Say in train.pipeline.partition where to cut it.",
        )


def refuse(message: str, remedy: str = "") -> SpecError:
    """Return the error that says why a model cannot be split."""
    return spec_error(_FIELD, message, remedy)
