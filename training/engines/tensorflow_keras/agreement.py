"""What ranks tell one another outside of steps. All functions here wait: every rank must call them, in one order."""

from __future__ import annotations

from typing import Any

import numpy as np

from training.engines.agreement import share_from_chief
from training.engines.tensorflow_keras.strategies.strategy import Strategy
from training.engines.tensorflow_keras.weights import hash_weights

__all__ = ["share_from_chief", "unify_weights"]


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
