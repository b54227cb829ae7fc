"""The journal of tracking calls of one job: an append-only file, read from the last acknowledgement on.

What happened is in the journal before anything is sent, so a killed process or an absent server loses nothing. A
record is one JSON object on one line; a line without its line feed is half a record and is passed over. Segments that
are sent are deleted. Knows nothing of MLflow.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ConfigDict

from training.run.folder import FileModel

SEGMENT_BYTES = 8 << 20
_READ_BYTES = 1 << 18

Record = dict[str, Any]


class SpoolState(FileModel):
    """How far the server has taken the journal, and the last step of each series that it has."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    segment: int = 1
    offset: int = 0
    last_steps: dict[str, int] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A record with the place where it ends.

    Attributes:
        record: What to do; None for a line that is none (half a line of a killed process).
        segment: Number of its file.
        end: Offset behind it.
    """

    record: Record | None
    segment: int
    end: int


class Spool:
    """Journal in a folder. `append` may be called by one thread while another one reads and acknowledges.

    Attributes:
        folder: Where the segments and the state are.
        last_steps: Last step of each series in the journal, sent or not.
    """

    def __init__(self, folder: Path, *, segment_bytes: int = SEGMENT_BYTES) -> None:
        self.folder = folder
        self._segment_bytes = segment_bytes
        self._handle: int | None = None
        self._lock: int | None = None
        self._state = self._read_state()
        self._segment = max([self._state.segment, *self._segments()])
        self._size = 0
        self._torn = False
        self.last_steps = self._read_last_steps()

    @property
    def _state_path(self) -> Path:
        return self.folder / "state.json"

    def _path(self, segment: int) -> Path:
        return self.folder / f"journal-{segment:06d}.jsonl"

    def _segments(self) -> list[int]:
        return sorted(int(path.stem.partition("-")[2]) for path in self.folder.glob("journal-*.jsonl"))

    def _read_state(self) -> SpoolState:
        try:
            return SpoolState.read(self._state_path) or SpoolState()
        except ValueError:
            # Lost in a power failure: everything that is still here is sent again, which changes nothing.
            return SpoolState()

    def _read_last_steps(self) -> dict[str, int]:
        steps = dict(self._state.last_steps)
        for entry in self.entries():
            _raise_step(steps, entry.record)
        return steps

    def append(self, record: Record) -> None:
        """Write `record` behind the others: one `write` call into the page cache, some microseconds.

        Raises:
            OSError: The disk is full or gone; the record is not in the journal, the earlier ones are.
        """
        line = json.dumps(record, separators=(",", ":")).encode() + b"\n"
        handle = self._open_segment()
        data = b"\n" + line if self._torn else line
        self._torn = True
        if os.write(handle, data) != len(data):
            raise OSError(f"Only a part of a record was written to {self._path(self._segment)}. Free some disk space.")
        self._torn = False
        self._size += len(data)
        _raise_step(self.last_steps, record)

    def _open_segment(self) -> int:
        if self._handle is not None and self._size >= self._segment_bytes:
            os.close(self._handle)
            self._handle = None
            self._segment += 1
        if self._handle is None:
            self.folder.mkdir(parents=True, exist_ok=True)
            path = self._path(self._segment)
            self._handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
            self._size = os.fstat(self._handle).st_size
            self._torn = self._size > 0 and os.pread(self._handle, 1, self._size - 1) != b"\n"
        return self._handle

    def entries(self) -> Iterator[Entry]:
        """Yield what is not acknowledged, in order."""
        for segment in self._segments():
            if segment >= self._state.segment:
                start = self._state.offset if segment == self._state.segment else 0
                yield from self._read_segment(segment, start)

    def _read_segment(self, segment: int, start: int) -> Iterator[Entry]:
        with self._path(segment).open("rb", buffering=_READ_BYTES) as stream:
            start = min(start, stream.seek(0, os.SEEK_END))
            stream.seek(start)
            for line in stream:
                if not line.endswith(b"\n"):
                    return
                start += len(line)
                yield Entry(record=_parse(line), segment=segment, end=start)

    @property
    def is_empty(self) -> bool:
        """Whether everything in the journal is acknowledged."""
        return next(self.entries(), None) is None

    def pending(self) -> int:
        """Return the number of records that are not acknowledged."""
        return sum(entry.record is not None for entry in self.entries())

    def acknowledge(self, entries: list[Entry]) -> None:
        """Remember that the server has `entries`, the next ones in order.

        A crash before this leads to sending them again; all calls are such that this changes nothing.

        Raises:
            OSError: The state could not be written.
        """
        if not entries:
            return
        steps = dict(self._state.last_steps)
        for entry in entries:
            _raise_step(steps, entry.record)
        self._state = SpoolState(segment=entries[-1].segment, offset=entries[-1].end, last_steps=steps)
        self._state.write(self._state_path, durable=False)
        for segment in self._segments():
            if segment < self._state.segment:
                self._path(segment).unlink(missing_ok=True)

    def lock(self) -> bool:
        """Become the one process that sends this journal; False while another one does."""
        if self._lock is not None:
            return True
        self.folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(self.folder / "sender.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            return False
        self._lock = handle
        self._state = self._read_state()
        return True

    def unlock(self) -> None:
        """Let other processes send."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def close(self) -> None:
        """Let go of the files and of the lock."""
        self.unlock()
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


def _parse(line: bytes) -> Record | None:
    try:
        record = json.loads(line)
    except ValueError:
        return None
    return record if isinstance(record, dict) else None


def _raise_step(steps: dict[str, int], record: Record | None) -> None:
    series, step = (record or {}).get("series"), (record or {}).get("step")
    if isinstance(series, str) and isinstance(step, int):
        steps[series] = max(steps.get(series, step), step)
