"""What `ganger run` shows while it works: log lines above, a bar for the current step below."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as RichProgress

from training.run.folder import RunFolder
from training.run.job import JobState, JobStatus

POLL_S = 0.5


class Progress:
    """Log lines and, on a terminal, a bar that follows the status of the current step. Writes to stderr only."""

    def __init__(self, run: RunFolder) -> None:
        self._run = run
        self._console = Console(stderr=True, highlight=False)
        self._bar = RichProgress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[detail]}"),
            TimeElapsedColumn(),
            console=self._console,
            transient=True,
            disable=not self._console.is_terminal,
        )
        self._task = self._bar.add_task("", total=None, detail="")
        self._step = ""
        self._began = time.monotonic()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._poll, daemon=True)

    def __enter__(self) -> Self:
        self._bar.start()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()
        self._bar.stop()

    def print(self, line: str) -> None:
        """Print a line above the bar, as it is."""
        self._console.print(line, markup=False, soft_wrap=True)

    def step(self, name: str) -> None:
        """Begin the bar of a step."""
        self._step = name
        self.print(f"{time.monotonic() - self._began:6.1f} s  {name}")
        self._bar.reset(self._task, description=name, total=None, detail="")

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Take the bar away while something is asked at the terminal."""
        self._bar.stop()
        try:
            yield
        finally:
            self._bar.start()

    def _poll(self) -> None:
        while not self._over.wait(POLL_S):
            status = JobStatus.read(self._run.job(self._step).status) if self._step else None
            if status is not None and status.epochs:
                detail = "  ".join(f"{name} {value:.4g}" for name, value in status.metrics.items())
                self._bar.update(self._task, completed=status.epoch, total=status.epochs, detail=detail)
            elif status is not None:
                queued = status.state is JobState.QUEUED
                self._bar.update(self._task, detail="waiting for free slots" if queued else "")
