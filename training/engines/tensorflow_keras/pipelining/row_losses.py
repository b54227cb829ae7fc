"""What a loss must be like to be had from micro-batches: a mean or a sum of what each row has for itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
from keras.src.backend.common.masking import get_keras_mask

from training.engines.tensorflow_keras.pipelining.splittable import refuse
from training.errors import SpecError

#: Loss reductions that are means over rows, and the one that adds up.
_MEANS = ("sum_over_batch_size", "mean", "mean_with_sample_weight")
_SUM = "sum"
#: Rows by which a loss shows whether each has its own.
_FEW_ROWS = 3


def is_mean(model: Any) -> bool:
    """Whether the loss of a batch is the mean over its rows; otherwise it is the sum.

    Raises:
        SpecError: It is something else.
    """
    reductions = {getattr(each.loss, "reduction", None) for each in model._compile_loss._flat_losses}
    if len(reductions) == 1 and reductions <= {*_MEANS, _SUM}:
        return _SUM not in reductions
    raise refuse(
        "must have a loss that is a mean or a sum over rows to be trained in micro-batches. "
        f"Received: a loss with the reduction {' and '.join(map(str, reductions)) or 'none'}."
    )


def check_row_losses(model: Any, labels: Any, outputs: Any) -> None:
    """Check, on rows that are made up, that the loss of `model` gives each row its own, whatever the others are.

    Only such a loss is the same whether a batch comes whole or in micro-batches.

    Args:
        model: The model, compiled and built.
        labels: Labels of any rows, of which the shape counts.
        outputs: Likewise, what the model makes of rows.

    Raises:
        SpecError: Its loss is another.
    """
    made = np.random.default_rng(0).uniform(0.1, 0.9, (_FEW_ROWS, *outputs.shape[1:]))
    rows = np.arange(_FEW_ROWS).reshape(-1, *[1] * (len(labels.shape) - 1)) % 2
    truth = np.broadcast_to(rows, (_FEW_ROWS, *labels.shape[1:]))
    for each in model._compile_loss._flat_losses:
        _check_row_loss(each.loss, *(tf.constant(part, each.loss.dtype) for part in (truth, made)))


def _check_row_loss(loss: Any, truth: Any, made: Any) -> None:
    found = loss.call(truth, made)
    if len(found.shape) == 0 or found.shape[0] != _FEW_ROWS:
        given = list(found.shape) or "one number"
        received = f"{loss.name}, which gives {given} for {_FEW_ROWS} rows"
        raise _refuse_loss(received, "Have it return a number for each row, without a mean over them.")
    if get_keras_mask(found) is not None and loss.reduction != _SUM:
        received = f"{loss.name}, which leaves rows or parts of them out, as ignore_class does"
        raise _refuse_loss(received, "Use reduction='sum', or have it count them as 0.")
    alone = tf.concat([loss.call(truth[row : row + 1], made[row : row + 1]) for row in range(_FEW_ROWS)], axis=0)
    if np.all(np.isfinite([found, alone])) and not np.allclose(found, alone, rtol=1e-3, atol=1e-6):
        received = f"{loss.name}, which gives a row another number when it comes with others"
        raise _refuse_loss(received, "Use another strategy, or have it go by each row alone.")


def _refuse_loss(received: str, remedy: str) -> SpecError:
    return refuse(
        "must have a loss that gives each row a number of its own, for a mean or a sum of them, to be trained in "
        f"micro-batches. Received: {received}.",
        remedy,
    )
