"""The learning rate as it really is: scaled for many replicas, warmed up, and read for the log."""

from __future__ import annotations

from typing import Any

import keras


def scale_learning_rate(model: Any, factor: float, warmup_steps: int) -> None:
    """Multiply the rate of a compiled model by `factor`, reached after `warmup_steps` steps.

    A rate that is a number is set, so that callbacks may change it later and checkpoints hold it. A schedule stays
    what it is, so that the saved model loads without us: what the optimizer makes of it is multiplied.

    Args:
        model: A compiled `keras.Model`, built in the strategy's scope.
        factor: At least 1.
        warmup_steps: The rate rises linearly from the model's own rate, or from 0 with a factor of 1.
    """
    optimizer = _find_optimizer(model)
    if isinstance(optimizer._learning_rate, keras.optimizers.schedules.LearningRateSchedule):
        constant = factor
    else:
        constant = 1.0
        optimizer.learning_rate = float(keras.ops.convert_to_numpy(optimizer.learning_rate)) * factor
    if constant == 1.0 and not warmup_steps:
        return
    begin = 1 / factor if factor > 1 else 0.0
    current = optimizer._get_current_learning_rate

    def get_current_learning_rate() -> Any:
        if not warmup_steps:
            return current() * constant
        done = keras.ops.cast(optimizer._iterations + 1, "float32") / warmup_steps
        return current() * (constant * (begin + (1 - begin) * keras.ops.minimum(done, 1.0)))

    optimizer._get_current_learning_rate = get_current_learning_rate


def read_learning_rate(model: Any) -> float:
    """Return the rate of the next update, whatever schedule, scaling or loss scaling surrounds it."""
    return float(keras.ops.convert_to_numpy(_find_optimizer(model).learning_rate))


def _find_optimizer(model: Any) -> Any:
    return getattr(model.optimizer, "inner_optimizer", model.optimizer)
