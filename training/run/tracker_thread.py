"""Keeps the tracker away from the gang, in a thread: a slow or broken server costs the training nothing."""

from __future__ import annotations

import queue
import threading
import traceback
from collections.abc import Callable

from training.run.event import Event
from training.run.job import JobResult
from training.run.redact import Redactor
from training.run.tracker_api import Tracker, TrackingReport


class TrackerThread:
    """Calls a tracker in order, from one thread. No method of this class blocks or raises.

    Attributes:
        opened: Set when the tracker was opened, or failed to.
        closed: Set when the tracker has taken everything, or failed to.
        run_id: Id of the tracking run, if there is one.
        report: What came of it, once closed.
    """

    def __init__(self, make_tracker: Callable[[], Tracker], redactor: Redactor) -> None:
        self.opened = threading.Event()
        self.closed = threading.Event()
        self.run_id: str | None = None
        self.report = TrackingReport(closed=False)
        self._make_tracker = make_tracker
        self._redactor = redactor
        self._notes: list[str] = []
        self._queue: queue.SimpleQueue[Event | JobResult] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="tracker", daemon=True)

    def start(self) -> None:
        """Begin to open the tracker."""
        self._thread.start()

    def put(self, event: Event) -> None:
        """Have the tracker handle `event` when it comes to it."""
        self._queue.put(event)

    def finish(self, result: JobResult) -> None:
        """Have the tracker close after all events."""
        self._queue.put(result)

    def give_up(self, reason: str) -> TrackingReport:
        """Return the report of a tracker that is not waited for any longer."""
        return TrackingReport(closed=False, notes=(*self._notes, reason))

    def _run(self) -> None:
        tracker = self._open()
        while True:
            item = self._queue.get()
            if isinstance(item, JobResult):
                self._close(tracker, item)
                return
            if tracker is not None:
                self._handle(tracker, item)

    def _open(self) -> Tracker | None:
        tracker = None
        try:
            tracker = self._make_tracker()
            self.run_id = tracker.open()
        except Exception as error:  # noqa: BLE001 - whatever it is, it must not touch the training
            self._note("could not be opened", error)
        self.opened.set()
        return tracker

    def _handle(self, tracker: Tracker, event: Event) -> None:
        try:
            tracker.handle(event)
        except Exception as error:  # noqa: BLE001
            self._note(f"lost the {event.event} event of rank {event.rank}", error)

    def _close(self, tracker: Tracker | None, result: JobResult) -> None:
        report: TrackingReport | None = TrackingReport(closed=False)
        try:
            report = tracker.close(result.state, result) if tracker is not None else report
        except Exception as error:  # noqa: BLE001
            self._note("could not be closed", error)
        report = report or TrackingReport()
        self.report = TrackingReport(closed=report.closed, notes=(*self._notes, *report.notes))
        self.closed.set()

    def _note(self, what: str, error: Exception) -> None:
        """Say each kind of trouble once; the whole story goes to the supervisor's own log."""
        note = self._redactor.text(f"tracking {what}: {type(error).__name__}: {error}")
        if note not in self._notes:
            self._notes.append(note)
            print(self._redactor.text("".join(traceback.format_exception(error))), flush=True)
