"""How long it takes until a fault is noticed, and until the gang is gone: seen from outside, by the kernel's view."""

from __future__ import annotations

import os
import select
import threading
import time
from dataclasses import dataclass

from tests.chaos.watched_run import WatchedRun
from training.run.job import JobState, JobStatus

_LIMIT_S = 30.0
_POLL_S = 0.002


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Seconds from a kill.

    Attributes:
        noticed_s: Until the status of the job told of it; None where nobody was left to tell.
        gone_s: Until no process of the attempt ran any more.
    """

    noticed_s: float | None
    gone_s: float | None


class Stopwatch:
    """Measures one kill: made just before it, started with it, read when all is over.

    Args:
        run: The training.
        rank: The rank that will be killed; None for the supervisor, which then tells nothing any more.
    """

    def __init__(self, run: WatchedRun, rank: int | None) -> None:
        self._run, self._rank = run, rank
        status = run.status()
        self._attempt = status.attempt if status is not None else 1
        self._descriptors = [os.pidfd_open(pid) for pid in run.rank_pids().values()]
        self._noticed_s: float | None = None
        self._gone_s: float | None = None
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def start(self) -> None:
        """Begin to measure."""
        self._began = time.monotonic()
        self._thread.start()

    def read(self) -> Timing:
        """Return what was measured; waits until there is something to return."""
        self._thread.join()
        return Timing(noticed_s=self._noticed_s, gone_s=self._gone_s)

    def _watch(self) -> None:
        poll = select.poll()
        for descriptor in self._descriptors:
            poll.register(descriptor, select.POLLIN)
        while self._passed() < _LIMIT_S and not self._is_done():
            if self._gone_s is None and len(poll.poll(0)) == len(self._descriptors):
                self._gone_s = self._passed()
            if self._rank is not None and self._noticed_s is None and self._is_noticed():
                self._noticed_s = self._passed()
            time.sleep(_POLL_S)
        for descriptor in self._descriptors:
            os.close(descriptor)

    def _passed(self) -> float:
        return time.monotonic() - self._began

    def _is_done(self) -> bool:
        return self._gone_s is not None and (self._rank is None or self._noticed_s is not None)

    def _is_noticed(self) -> bool:
        status = JobStatus.read(self._run.train.status)
        if status is None:
            return False
        if status.attempt > self._attempt or status.state.is_over or status.state is JobState.STOPPING:
            return True
        return any(rank.rank == self._rank and rank.exit_code is not None for rank in status.ranks)
