"""Sends the journal of one job, batch by batch, and waits longer after each failure.

Stepped by `tick`: it reads no clock and never waits itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from training.tracking.apply import LONG_CALLS, RecordApplier
from training.tracking.spool import Entry, Record, Spool
from training.tracking.store import MAX_METRICS, StoreAwayError, StoreRefusedError

_FIRST_BACKOFF_S = 0.5
_MAX_BACKOFF_S = 8.0
_MAX_RECORDS = 4000


@dataclass(slots=True, kw_only=True)
class SenderStatus:
    """How the sending goes.

    Attributes:
        away: Why nothing could be sent at the last try; empty when it could.
        failures: Tries in a row that failed.
        retry_at: When to try again, on the clock of `tick`.
        in_long_call: A call that may well take minutes (model, artifacts) is going on.
        sent: Number of records that the server took.
    """

    away: str = ""
    failures: int = 0
    retry_at: float = 0.0
    in_long_call: bool = False
    sent: int = 0


class Sender:
    """Sends what is in the journal of a job.

    Attributes:
        status: How it goes.
    """

    def __init__(self, spool: Spool, applier: RecordApplier) -> None:
        self._spool = spool
        self._applier = applier
        self.status = SenderStatus()

    def tick(self, now: float) -> bool:
        """Send one batch, where it is time; return whether there is more to send at once.

        Args:
            now: Seconds on any steady clock.
        """
        if now < self.status.retry_at:
            return False
        try:
            more = self._send_batch()
        except (StoreAwayError, OSError) as error:
            self.status.away = str(error)
            self.status.retry_at = now + min(_FIRST_BACKOFF_S * 2.0 ** min(self.status.failures, 16), _MAX_BACKOFF_S)
            self.status.failures += 1
            return False
        self.status.away, self.status.failures, self.status.retry_at = "", 0, 0.0
        return more

    def _send_batch(self) -> bool:
        if not self._spool.lock():
            raise StoreAwayError(f"Another process sends {self._spool.folder}.")
        batch = list(islice(self._spool.entries(), _MAX_RECORDS))
        for group in group_entries(batch):
            self._send_group(group)
            self._spool.acknowledge(group)
            self.status.sent += len(group)
        return len(batch) == _MAX_RECORDS

    def _send_group(self, group: list[Entry]) -> None:
        records = [entry.record for entry in group if entry.record is not None]
        if not records:
            return
        self.status.in_long_call = records[0].get("op") in LONG_CALLS
        try:
            self._apply(records)
        finally:
            self.status.in_long_call = False

    def _apply(self, records: list[Record]) -> None:
        try:
            self._applier.apply(records)
        except StoreRefusedError as error:
            if len(records) == 1:
                self._applier.notes.append(f"Not recorded, since the tracking server refused it. {error}")
                return
            # One of them spoils the batch: let the others through.
            for record in records:
                self._apply([record])


def group_entries(entries: list[Entry]) -> Iterator[list[Entry]]:
    """Yield what is sent at once: metrics that follow each other up to MLflow's limit, everything else alone."""
    group: list[Entry] = []
    size = 0
    for entry in entries:
        points = _metric_count(entry)
        if group and (points is None or size + points > MAX_METRICS):
            yield group
            group, size = [], 0
        if points is None:
            yield [entry]
        else:
            group.append(entry)
            size += points
    if group:
        yield group


def _metric_count(entry: Entry) -> int | None:
    record = entry.record or {}
    values = record.get("m")
    return len(values) if record.get("op") == "metrics" and isinstance(values, dict) else None
