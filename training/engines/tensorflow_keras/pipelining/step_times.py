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
        self._steps: deque[list[np.ndarray[Any, Any]]] = deque(maxlen=_KEPT)
        self.skip_next()

    def skip_next(self) -> None:
        """Leave the next step out: in it, the function is traced and its parts are sent to the stages."""
        self._skips = True

    def add(self, marks: Sequence[Any]) -> None:
        """Take what the pipelined step returned."""
        if self._skips:
            self._skips = False
            return
        self._steps.append([np.asarray(stage).reshape(-1, 2) for stage in marks])

    def choose_typical(self) -> Timeline | None:
        """Return the step whose duration is the median one's; None before the second step."""
        timelines = sorted(map(self._read, self._steps), key=lambda timeline: timeline.step_s)
        return timelines[len(timelines) // 2] if timelines else None

    def _read(self, marks: list[np.ndarray[Any, Any]]) -> Timeline:
        return from_marks(
            [
                (work, float(begin), float(end))
                for order, times in zip(self._orders, marks, strict=True)
                for work, (begin, end) in zip(order, times, strict=True)
            ],
            stages=len(self._orders),
        )
