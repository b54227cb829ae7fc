"""Sends what earlier jobs of a run could not send, and sees to it that no MLflow run of ours stays RUNNING (K43)."""

from __future__ import annotations

import time

from training.run.folder import JobFolder, RunFolder
from training.run.job import JobState, TrackingRef
from training.tracking.apply import RecordApplier, StoreFactory
from training.tracking.sender import Sender
from training.tracking.spool import Spool
from training.tracking.store import StoreAwayError, StoreRefusedError, TrackingStore

STATUS_OF = {JobState.SUCCEEDED: "FINISHED", JobState.FAILED: "FAILED", JobState.CANCELLED: "KILLED"}


def connect_store(uri: str) -> TrackingStore:
    """Return the MLflow server at `uri`; imports MLflow, which takes seconds.

    Raises:
        StoreAwayError: There is none.
    """
    from training.tracking.mlflow_store import MlflowStore

    return MlflowStore(uri)


def replay(run: RunFolder, *, make_store: StoreFactory = connect_store, uri: str | None = None) -> tuple[str, ...]:
    """Send what the jobs of `run` have in their journals; return notes, one for each that could not be sent.

    Trainings that were set aside come first, so that their MLflow runs are there when a later one refers to them. Does
    nothing, and imports nothing, where all journals are empty. Jobs that are sending themselves are left alone.

    Args:
        run: Whose journals.
        make_store: Connects to a tracking address.
        uri: Current address of the server, where it is another one than at the time of the run.
    """
    notes: list[str] = []
    for each in (*reversed(run.earlier()), run):
        for job in each.jobs():
            if job.spool.exists():
                notes += replay_job(each, job, make_store, uri)
    return tuple(notes)


def replay_job(run: RunFolder, job: JobFolder, make_store: StoreFactory, uri: str | None = None) -> list[str]:
    """Send the journal of one job until it is empty or the server is away; return notes."""
    spool = Spool(job.spool)
    try:
        if spool.is_empty:
            return []
        applier = RecordApplier(run, job, make_store, uri)
        sender = Sender(spool, applier)
        while sender.tick(0.0):
            pass
        away = sender.status.away
        return applier.notes + ([f"Tracking records wait in {spool.folder}. {away}"] if away else [])
    finally:
        spool.close()


def close_open_runs(
    run: RunFolder, status: str, *, make_store: StoreFactory = connect_store, uri: str | None = None
) -> tuple[str, ...]:
    """Set the MLflow run of `run` to `status` where it still says RUNNING; return notes.

    The guard for a supervisor that was killed; call it when no job of the run is alive. Sends the journals first.
    Where the server is away, the end is put into the journal, for the next `replay`.

    Args:
        run: Whose MLflow run.
        status: `KILLED` or `FAILED`.
        make_store: Connects to a tracking address.
        uri: Current address of the server, where it is another one than at the time of the run.
    """
    notes = list(replay(run, make_store=make_store, uri=uri))
    ref = TrackingRef.read(run.tracking)
    if ref is None:
        _close_in_journals(run, status)
        return tuple(notes)
    try:
        store = make_store(uri or ref.tracking_uri)
        state = store.read_run(ref.run_id)
        if state is not None and state.status in ("RUNNING", "SCHEDULED"):
            store.set_status(ref.run_id, status, _now_ms())
            notes.append(f"The MLflow run {ref.run_id} still said {state.status}; now it says {status}.")
    except (StoreAwayError, StoreRefusedError) as error:
        notes.append(str(error))
        _close_in_journals(run, status)
    return tuple(notes)


def _close_in_journals(run: RunFolder, status: str) -> None:
    """Put an end behind what a journal holds, unless its last word is one already."""
    for job in run.jobs():
        if not job.spool.exists():
            continue
        spool = Spool(job.spool)
        try:
            records = [entry.record for entry in spool.entries() if entry.record]
            ends = [record for record in records if record.get("op") in ("open", "close")]
            if records and not (ends and ends[-1]["op"] == "close"):
                owner = all(record.get("owner", True) for record in ends)
                spool.append({"op": "close", "t": _now_ms(), "status": status if owner else "", "failure": ""})
        finally:
            spool.close()


def _now_ms() -> int:
    return round(time.time() * 1000)
