"""Applies one record of the journal, or metrics of several, to the MLflow run. Applying it again changes nothing."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from training.plan.job import TrackingPlan
from training.run.folder import JobFolder, RunFolder
from training.run.job import TrackingRef
from training.tracking.artifacts import texts_of
from training.tracking.attach import attach_run
from training.tracking.naming import MAX_TAG_LENGTH, TAG_FAILURE, TAG_RUN_ID, shorten
from training.tracking.spool import Record
from training.tracking.store import (
    MAX_METRICS,
    MAX_TAGS,
    MetricPoint,
    StoreAwayError,
    StoreRefusedError,
    TrackingStore,
    split_texts,
)

StoreFactory = Callable[[str], TrackingStore]
LONG_CALLS = frozenset(["model", "artifacts"])


class RecordApplier:
    """Applies records of one job.

    Args:
        run: Whose MLflow run it is.
        job: Whose records they are.
        make_store: Connects to an address.
        uri: Address that is used in place of the recorded one, such as that of a server that has moved.
    """

    def __init__(self, run: RunFolder, job: JobFolder, make_store: StoreFactory, uri: str | None = None) -> None:
        self._run = run
        self._job = job
        self._make_store = make_store
        self._uri = uri
        self._store: TrackingStore | None = None
        self._connected_uri = ""
        self.notes: list[str] = []

    def apply(self, records: list[Record]) -> None:
        """Apply one record, or several that hold metrics.

        Raises:
            StoreAwayError: Try again later.
            StoreRefusedError: It will never work; with several records, for one of them at least.
        """
        try:
            self._dispatch(records)
        except (KeyError, TypeError, ValueError) as error:
            raise StoreRefusedError(f"The journal holds a record of an unknown form: {error!r}.") from error

    def _dispatch(self, records: list[Record]) -> None:
        record = records[0]
        match record["op"]:
            case "open":
                self._open(record)
            case "metrics":
                store, ref = self._session()
                store.log_metrics(ref.run_id, [point for each in records for point in _points_of(each)])
            case "tags":
                store, ref = self._session()
                for part in split_texts(record["tags"], MAX_TAGS):
                    store.set_tags(ref.run_id, part)
            case "evaluation":
                store, ref = self._session()
                log_evaluation_points(store, ref.run_id, record["m"], record["step"], record["t"])
            case "model":
                self._log_model(self._run.model if self._run.is_set_aside else Path(record["path"]))
            case "artifacts":
                store, ref = self._session()
                for path, text in texts_of(self._run, self._job):
                    store.log_text(ref.run_id, text, path)
            case "close":
                self._close(record)
            case other:
                raise ValueError(f"op must be one that this version writes. Received: {other!r}")

    def _session(self) -> tuple[TrackingStore, TrackingRef]:
        ref = TrackingRef.read(self._run.tracking)
        if ref is None:
            raise StoreAwayError(f"There is no MLflow run yet: {self._run.tracking} does not exist.")
        return self._connect(self._uri or self._connected_uri or ref.tracking_uri), ref

    def _connect(self, uri: str) -> TrackingStore:
        if self._store is None or self._connected_uri != uri:
            self._store = self._make_store(uri)
            self._connected_uri = uri
        return self._store

    def _open(self, record: Record) -> None:
        plan = TrackingPlan.model_validate(record["plan"])
        plan = plan.model_copy(update={"tracking_uri": self._uri or plan.tracking_uri})
        owner, start_ms, tags = record["owner"], record["t"], record["tags"]
        store = self._connect(plan.tracking_uri)
        try:
            with _one_process(self._run.tracking.with_suffix(".lock")):
                self.notes += attach_run(store, plan, self._run, owner=owner, start_ms=start_ms, tags=tags)
        except StoreRefusedError as error:
            # Nothing can follow without a run, and a person can heal it (restore the experiment): so it is not lost.
            raise StoreAwayError(str(error)) from None

    def _log_model(self, folder: Path) -> None:
        store, ref = self._session()
        uri = store.log_model(ref.run_id, folder, {TAG_RUN_ID: self._run.run_id})
        ref.model_copy(update={"model_uri": uri}).write(self._run.tracking)

    def _close(self, record: Record) -> None:
        store, ref = self._session()
        failure = record["failure"]
        if record["status"]:
            store.set_status(ref.run_id, record["status"], record["t"])
        if failure:
            store.set_tags(ref.run_id, {TAG_FAILURE: shorten(failure, MAX_TAG_LENGTH, "artifact failure.txt")})
        if len(failure) > MAX_TAG_LENGTH:
            store.log_text(ref.run_id, failure, "failure.txt")


def log_evaluation_points(
    store: TrackingStore, run_id: str, metrics: Mapping[str, float], step: int | None, time_ms: int
) -> None:
    """Write the metrics of an evaluation, each once: a retry that found the same values adds no points.

    Args:
        store: Where to.
        run_id: The run of the training.
        metrics: MLflow metric name to value.
        step: Last step of the training; None: as the metric `epoch` has it.
        time_ms: When, in milliseconds since the epoch.
    """
    if step is None:
        last_epoch = store.last_point(run_id, "epoch")
        step = last_epoch[0] if last_epoch else 0
    new = {name: value for name, value in metrics.items() if store.last_point(run_id, name) != (step, value)}
    points = [MetricPoint(name=name, value=value, step=step, time_ms=time_ms) for name, value in new.items()]
    for start in range(0, len(points), MAX_METRICS):
        store.log_metrics(run_id, points[start : start + MAX_METRICS])


def _points_of(record: Record) -> list[MetricPoint]:
    step, time_ms = record["step"], record["t"]
    return [MetricPoint(name=name, value=value, step=step, time_ms=time_ms) for name, value in record["m"].items()]


@contextmanager
def _one_process(path: Path) -> Iterator[None]:
    """Let one process at a time look for and make the run: exactly one per training (K39)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
