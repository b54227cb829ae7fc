"""What ranks tell one another outside of steps. All functions here wait: every rank must call them, in one order."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from training.engines.tensorflow_keras.strategies.strategy import Strategy
from training.engines.tensorflow_keras.weights import hash_weights


def share_from_chief(strategy: Strategy, value: Any, *, is_chief: bool) -> Any:
    """Return on every rank what the chief gave; what the others give is ignored.

    Args:
        strategy: Adds up over ranks, which is a broadcast when all others give zeros.
        value: Anything that JSON can hold.
        is_chief: Whether this rank is the chief.
    """
    text = json.dumps(value).encode() if is_chief else b""
    length = int(strategy.add_up(np.array([len(text)], dtype=np.float64))[0])
    letters = np.zeros(length, dtype=np.float64)
    letters[: len(text)] = np.frombuffer(text, dtype=np.uint8)
    return json.loads(strategy.add_up(letters).astype(np.uint8).tobytes())


def unify_weights(strategy: Strategy, model: Any, *, is_chief: bool) -> bool:
    """Make the weights of all ranks those of the chief where they differ; return whether they did.

    TensorFlow takes the first values of mirrored variables from rank 0, but not what user code assigns afterwards.
    """
    own = int(hash_weights(model.variables)[:12], 16)  # 48 bits: whole in a float64
    chief = strategy.add_up(np.array([own if is_chief else 0], dtype=np.float64))[0]
    differing = strategy.add_up(np.array([own != chief], dtype=np.float64))[0]
    if not differing:
        return False
    for variable in model.variables:
        values = np.asarray(variable.numpy(), dtype=np.float64)
        variable.assign(strategy.add_up(values if is_chief else np.zeros_like(values)).astype(variable.dtype))
    return True
