"""Has a Keras 3 optimizer use gradients of all of Horovod's ranks: for the engine and for scripts.

Horovod 0.28.1's `DistributedOptimizer` knows the optimizers of Keras 2 only:
https://github.com/horovod/horovod/issues/4290. Keras 3 hands gradients to `apply`, which adds them up over the steps of
`gradient_accumulation_steps`, clips them, and updates. They are combined just before they are clipped: the norm that is
clipped is then that of the global batch, and what is accumulated locally travels once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import keras
import tensorflow as tf

Gradients = list[Any]


def combine_before_use(optimizer: Any, combine: Callable[[Gradients], Gradients]) -> None:
    """Make `optimizer` use what `combine` makes of its gradients.

    Args:
        optimizer: A Keras 3 optimizer. It stays of its own class, so that a saved model loads without Horovod.
        combine: Returns the gradients of all ranks from this rank's, dense tensors in one order on all ranks.
    """

    def combine_present(gradients: Sequence[Any]) -> Gradients:
        """None stays None; all ranks have it in the same places."""
        places = [index for index, gradient in enumerate(gradients) if gradient is not None]
        combined = list(gradients)
        found = combine([tf.convert_to_tensor(gradients[index]) for index in places])
        for index, gradient in zip(places, found, strict=True):
            combined[index] = gradient
        return combined

    if isinstance(optimizer, keras.optimizers.LossScaleOptimizer):
        # Whether a step is finite, and so is made, is to be decided alike on all ranks.
        apply = optimizer.apply
        optimizer.apply = lambda grads, trainable_variables=None: apply(combine_present(grads), trainable_variables)
    else:
        clip = optimizer._clip_gradients
        optimizer._clip_gradients = lambda grads: clip(combine_present(grads))
