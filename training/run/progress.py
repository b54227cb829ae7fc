"""How far a job is, gathered from the events of its ranks, and written down for whoever looks."""

from __future__ import annotations

import math

from training.run.event import Epoch, Event, Step
from training.run.folder import JobFolder
from training.run.job import JobState, JobStatus, RankStatus

_EVERY_S = 1.0


class Progress:
    """Keeps `status.json` up to date: at once when something changes state, else once a second."""

    def __init__(self, folder: JobFolder) -> None:
        self._folder = folder
        self._epoch = self._epochs = self._step = 0
        self._metrics: dict[str, float] = {}
        self._written: JobStatus | None = None
        self._written_at = -math.inf
        self.problem: str | None = None

    def hear(self, event: Event) -> None:
        """Take an event of a rank."""
        if isinstance(event, Step | Epoch):
            self._step = max(self._step, event.step)
            self._epoch = max(self._epoch, event.epoch)
            self._metrics |= {name: value for name, value in event.metrics.items() if math.isfinite(value)}
        if isinstance(event, Epoch):
            self._epochs = event.epochs

    def write(self, state: JobState, attempt: int, ranks: tuple[RankStatus, ...], now: float) -> None:
        """Write the status if it is due. A full disk is told once and ends nothing."""
        status = JobStatus(
            state=state,
            attempt=attempt,
            ranks=ranks,
            epoch=self._epoch,
            epochs=self._epochs,
            step=self._step,
            metrics=self._metrics,
        )
        if status == self._written or (now - self._written_at < _EVERY_S and not self._is_news(status)):
            return
        try:
            status.write(self._folder.status, durable=False)
        except OSError as error:
            self.problem = f"status.json is not up to date: {error.strerror}"
        self._written, self._written_at = status, now

    def _is_news(self, status: JobStatus) -> bool:
        return self._written is None or _stages(status) != _stages(self._written)


def _stages(status: JobStatus) -> tuple[object, ...]:
    return (status.state, status.attempt, [(rank.pid, rank.ready, rank.exit_code) for rank in status.ranks])
