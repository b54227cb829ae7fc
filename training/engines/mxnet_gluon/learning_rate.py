"""The learning rate as it really is: scaled for many replicas, and warmed up."""

from __future__ import annotations

from typing import Any

from mxnet.lr_scheduler import LRScheduler

from training.plan.learning_rate import plan_warmup


class ScaledRate(LRScheduler):  # type: ignore[misc]  # MXNet ships no types
    """A rate, or somebody's schedule of it, times what the warm-up makes of it.

    Args:
        schedule: The optimizer's own schedule; None for the constant `rate`.
        rate: The optimizer's own rate.
        factor: At least 1.
        warmup_steps: Steps until the factor is reached.
    """

    def __init__(self, schedule: Any, rate: float, factor: float, warmup_steps: int) -> None:
        super().__init__(base_lr=rate)
        self._schedule, self._factor, self._warmup_steps = schedule, factor, warmup_steps

    def __call__(self, num_update: int) -> float:
        """Return the rate of the update `num_update`, from 1."""
        own = self._schedule(num_update) if self._schedule else self.base_lr
        return float(own * plan_warmup(num_update, self._factor, self._warmup_steps))


def scale_learning_rate(optimizer: Any, factor: float, warmup_steps: int) -> None:
    """Have an optimizer multiply its rate by `factor`, reached after `warmup_steps` steps (`plan_warmup`)."""
    if factor != 1.0 or warmup_steps:
        schedule = optimizer.lr_scheduler
        rate = schedule.base_lr if schedule else optimizer.lr
        optimizer.lr_scheduler = ScaledRate(schedule, rate, factor, warmup_steps)
