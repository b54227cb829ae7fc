"""The one writer of the MLflow run of a job: what the supervisor tells it goes to a journal, which a thread sends.

`handle` costs some microseconds whether the server is there or not. Nothing here fails a training: what goes wrong
becomes a note of the job's result, and what could not be sent stays in the run folder until
`training.tracking.replay` sends it.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass

from training.plan.job import TrackingPlan
from training.run.event import Event
from training.run.folder import JobFolder, RunFolder
from training.run.job import FailureHeadline, JobResult, JobState, TrackingRef
from training.run.tracker_api import TrackingReport
from training.tracking.apply import RecordApplier, StoreFactory
from training.tracking.mask import mask_text, mask_uri
from training.tracking.naming import Points, SavedModel, TagChange, changes_of
from training.tracking.replay import STATUS_OF, connect_store, replay_job
from training.tracking.sender import Sender
from training.tracking.spool import Record, Spool
from training.tracking.store import MAX_METRICS
from training.tracking.tags import default_tags

#: Jobs that add to the MLflow run of a training but do not decide how it ended.
ADDING_JOBS = frozenset(["evaluate"])
#: After so many failures in a row the server counts as away, and nothing waits for it.
_AWAY_FAILURES = 3
_POLL_S = 0.05
_MAX_UNWRITTEN = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackerLimits:
    """How long the tracker may wait, in seconds.

    Attributes:
        open_s: For the MLflow run to be there before the ranks start; then the training starts without it.
        flush_s: At the end, for metrics and status.
        upload_s: At the end, for model and logs, as long as the upload goes on.
        batch_s: Between two batches.
    """

    open_s: float = 30.0
    flush_s: float = 30.0
    upload_s: float = 600.0
    batch_s: float = 1.0


def open_tracker(
    plan: TrackingPlan,
    job: JobFolder,
    run: RunFolder,
    *,
    make_store: StoreFactory = connect_store,
    limits: TrackerLimits | None = None,
) -> JobTracker:
    """Return the tracker of a job; nothing is imported, written or sent before its `open`.

    Args:
        plan: What to write down besides events.
        job: Whose events come.
        run: Whose MLflow run it is; one for all its jobs.
        make_store: Connects to a tracking address; tests give their own.
        limits: How long to wait.
    """
    return JobTracker(plan, job, run, make_store, limits or TrackerLimits())


class JobTracker:
    """Writes down what happens in one job (a `training.run.tracker_api.Tracker`). None of its methods raises."""

    def __init__(
        self, plan: TrackingPlan, job: JobFolder, run: RunFolder, make_store: StoreFactory, limits: TrackerLimits
    ) -> None:
        self._uri = plan.tracking_uri
        # What goes to disk has no password in it, wherever the plan came from (K18).
        self._plan = plan.model_copy(update={"tracking_uri": mask_uri(plan.tracking_uri)})
        self._job = job
        self._run = run
        self._make_store = make_store
        self._limits = limits
        self._is_owner = job.path.name not in ADDING_JOBS
        self._spool = Spool(job.spool)
        self._applier = RecordApplier(run, job, make_store, plan.tracking_uri)
        self._sender = Sender(self._spool, self._applier)
        self._thread: threading.Thread | None = None
        self._opened = threading.Event()
        self._wake = threading.Event()
        self._closing = False
        self._stopped = False
        self._model = ""
        self._repeated = 0
        self._unwritten: list[Record] = []
        self._lost = 0
        self._trouble = ""

    @property
    def run_id(self) -> str | None:
        """Id of the MLflow run; None as long as the server has not made it."""
        ref = TrackingRef.read(self._run.tracking)
        return ref.run_id if ref else None

    def open(self) -> str | None:
        """Make the MLflow run, or continue the one that the run folder names; return its id.

        Waits `open_s` at most. None: the server is away; the run is made when it is back, even after the training.
        """
        tags = default_tags(self._plan, self._run, self._job)
        plan = self._plan.model_dump(mode="json")
        self._append({"op": "open", "t": _now_ms(), "owner": self._is_owner, "plan": plan, "tags": tags})
        self._thread = threading.Thread(target=self._send_all, name="tracking", daemon=True)
        self._thread.start()
        self._opened.wait(self._limits.open_s)
        return self.run_id

    def handle(self, event: Event) -> None:
        """Take an event of any rank: some microseconds, never waits for the server, never raises."""
        match changes_of(event, job=self._job.path.name):
            case Points() as points:
                self._take_points(points)
            case TagChange() as change:
                self._append({"op": "tags", "tags": change.tags})
            case SavedModel() as model:
                # Uploaded when the training has succeeded: an upload must not compete with the last steps.
                self._model = model.path

    def close(self, state: JobState, result: JobResult) -> TrackingReport:
        """Write down how the job ended, send what is left within the limits, and tell what a person should know."""
        failure = mask_text(describe_failure(result.failure), os.environ)
        status = STATUS_OF.get(state, "FAILED") if self._is_owner else ""
        self._append({"op": "close", "t": _now_ms(), "status": status, "failure": failure})
        if state is JobState.SUCCEEDED and self._model:
            self._append({"op": "model", "path": self._model})
        self._append({"op": "artifacts"})
        self._finish_sending()
        notes = tuple(self._notes())
        closed = self._spool.is_empty and not self._unwritten
        if self._thread is None or not self._thread.is_alive():
            self._spool.close()
        return TrackingReport(closed=closed, notes=notes)

    def _take_points(self, points: Points) -> None:
        if points.series == "evaluation":
            self._append({"op": "evaluation", "t": points.time_ms, "step": points.step, "m": points.values})
            return
        step = points.step or 0
        if step <= self._spool.last_steps.get(points.series, -1):
            # A resumed training repeats the steps since its checkpoint; each is recorded once (K42).
            self._repeated += 1
            return
        for values in _parts(points.values):
            self._append({"op": "metrics", "series": points.series, "step": step, "t": points.time_ms, "m": values})

    def _append(self, record: Record) -> None:
        try:
            while self._unwritten:
                self._spool.append(self._unwritten[0])
                del self._unwritten[0]
            self._spool.append(record)
        except OSError as error:
            self._trouble = f"The journal of tracking calls could not be written: {error}."
            if len(self._unwritten) < _MAX_UNWRITTEN:
                self._unwritten.append(record)
            else:
                self._lost += 1

    def _send_all(self) -> None:
        try:
            self._replay_other_jobs()
            while not self._stopped:
                more = self._sender.tick(time.monotonic())
                if self._sender.status.sent or self._sender.status.failures >= _AWAY_FAILURES:
                    self._opened.set()
                if not more:
                    self._wake.wait(_POLL_S if self._closing else self._limits.batch_s)
        except Exception as error:  # noqa: BLE001 - the border: tracking never fails a training by itself
            self._trouble = f"The tracking thread ended: {type(error).__name__}: {error}."
        finally:
            self._opened.set()
            self._spool.unlock()

    def _replay_other_jobs(self) -> None:
        for run in (*reversed(self._run.earlier()), self._run):
            for other in run.jobs():
                if other.path != self._job.path and other.spool.exists():
                    self._applier.notes.extend(replay_job(run, other, self._make_store, self._uri))

    def _finish_sending(self) -> None:
        thread, quick_s, upload_s = self._thread, 0.0, 0.0
        failures = self._sender.status.failures
        self._closing = True
        self._sender.status.retry_at = 0.0
        self._wake.set()
        self._wake.clear()
        while thread is not None and thread.is_alive() and not self._spool.is_empty:
            began = time.monotonic()
            in_upload = self._sender.status.in_long_call
            thread.join(_POLL_S)
            spent = time.monotonic() - began
            quick_s, upload_s = quick_s + (0 if in_upload else spent), upload_s + (spent if in_upload else 0)
            # A server that was away gets one more try, now.
            is_away = self._sender.status.failures >= max(_AWAY_FAILURES, failures + 1)
            if is_away or quick_s > self._limits.flush_s or upload_s > self._limits.upload_s:
                break
        self._stopped = True
        if thread is not None:
            thread.join(2 * _POLL_S)

    def _notes(self) -> Iterator[str]:
        yield from dict.fromkeys(self._applier.notes)
        if self._trouble:
            yield self._trouble
        if self._lost:
            yield f"{self._lost} tracking records are lost, since the disk could not take them."
        if self._repeated:
            what = "1 point" if self._repeated == 1 else f"{self._repeated} points"
            yield f"{what} came again after a resume; MLflow has each of them once."
        if pending := self._spool.pending():
            yield self._pending_note(pending)

    def _pending_note(self, pending: int) -> str:
        because = self._sender.status.away or "The time for it was over."
        kept = f" The model is kept in {self._model}." if self._model else ""
        return (
            f"{pending} tracking records are not sent yet. {because} They wait in {self._spool.folder} for the next "
            f"task of the run.{kept}"
        )


def describe_failure(failure: FailureHeadline | None) -> str:
    """Return a failure as text for the MLflow run; empty where there is none."""
    if failure is None:
        return ""
    where = f"{failure.name}: " if failure.name else ""
    detail = f"\n\n{failure.detail}" if failure.detail else ""
    return f"{where}{failure.kind}: {failure.message}{detail}"


def _parts(values: dict[str, float]) -> Iterator[dict[str, float]]:
    items = list(values.items())
    for start in range(0, len(items), MAX_METRICS):
        yield dict(items[start : start + MAX_METRICS])


def _now_ms() -> int:
    return round(time.time() * 1000)
