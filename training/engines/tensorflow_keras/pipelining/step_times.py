"""How long the works of a pipeline's steps took: kept for the newest steps, the first of each tracing left out."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from training.plan.schedules import StageOrder
from training.plan.timeline import Timeline, from_marks

_KEPT = 64


class StepTimes:
    """The newest steps of a training.

    Args:
        orders: What each stage does, in its order.
    """

    def __init__(self, orders: Sequence[StageOrder]) -> None:
        self._orders = orders
        self._steps: deque[tuple[float, list[np.ndarray[Any, Any]]]] = deque(maxlen=_KEPT)
        self._skips = True  # in the first one, the function is traced and its parts are sent to the stages

    def add(self, marks: Sequence[Any], step_s: float) -> None:
        """Take what the pipelined step returned, and how long the chief waited for it."""
        if self._skips:
            self._skips = False
            return
        self._steps.append((step_s, [np.asarray(stage).reshape(-1, 2) for stage in marks]))

    def choose_typical(self) -> tuple[float, Timeline] | None:
        """Return duration and timeline of the step whose duration is the median one's; None before the second step."""
        steps = sorted(self._steps, key=lambda step: step[0])
        if not steps:
            return None
        step_s, marks = steps[len(steps) // 2]
        return step_s, self._read(marks)

    def _read(self, marks: list[np.ndarray[Any, Any]]) -> Timeline:
        return from_marks(
            [
                (work, float(begin), float(end))
                for order, times in zip(self._orders, marks, strict=True)
                for work, (begin, end) in zip(order, times, strict=True)
            ],
            stages=len(self._orders),
        )
