"""Validation by one rank while the others wait: so every metric is exactly that of one process."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from training.engines.agreement import share_from_chief
from training.engines.training_job import TrainingJob

_PULSE_S = 5.0

Metrics = dict[str, float]


class Pulse:
    """Says every few seconds that the chief still validates, to the supervisor and to the ranks that wait.

    Args:
        job: The training.
    """

    def __init__(self, job: TrainingJob[Any]) -> None:
        self._job = job
        self._last = time.monotonic()

    def beat(self) -> None:
        """Say so where it is time to; to be called after each batch."""
        if time.monotonic() - self._last > _PULSE_S:
            self._last = time.monotonic()
            self._job.ctx.heartbeat("validating")
            share(self._job, None)


def validate_on_chief(job: TrainingJob[Any], evaluate: Callable[[Pulse], Metrics]) -> Metrics:
    """Return the metrics of the held-out rows, `val_` in front, the same on every rank; empty without such rows.

    Args:
        job: The training.
        evaluate: Returns the metrics; called on the chief only.
    """
    if not job.holds_out:
        return {}
    if job.ctx.is_chief:
        named = {f"val_{name}": value for name, value in evaluate(Pulse(job)).items()}
        share(job, named)
        return named
    while True:
        job.ctx.heartbeat("waiting for the validation by rank 0")
        shared = share(job, None)
        if shared is not None:
            return shared


def share(job: TrainingJob[Any], metrics: Metrics | None) -> Metrics | None:
    """Return on every rank what the chief gave: metrics, or None while it is not done."""
    shared: Metrics | None = share_from_chief(job.strategy, metrics, is_chief=job.ctx.is_chief)
    return shared
