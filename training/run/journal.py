"""Writes a job down as it happens: `logs/rank-N.log`, `merged.log`, `events.jsonl`."""

from __future__ import annotations

import os
from pathlib import Path

from training.run.chatter import Chatter
from training.run.event import RECORD_SEPARATOR, Event, render_event
from training.run.folder import JobFolder
from training.run.narrate import narrate
from training.run.redact import Redactor
from training.run.streams import Line, clean_text

_FLUSH_BYTES = 1 << 18


class Journal:
    """Appends to the logs of a job; one write per file and `flush`.

    A full disk must not end a training that could go on: what cannot be written is dropped, and `problem` tells of it.
    """

    def __init__(self, folder: JobFolder, redactor: Redactor) -> None:
        self._folder = folder
        self.redactor = redactor
        self._pending: dict[Path, bytearray] = {}
        self._descriptors: dict[Path, int] = {}
        self._chatter: dict[int, Chatter] = {}
        self.problem: str | None = None

    def line(self, rank: int, line: Line) -> str | None:
        """Write a line of ordinary output, and return it as it is shown; None where only the rank's own log has it."""
        self._append(self._folder.rank_log(rank), self.redactor.bytes(line.data) + (b"\n" if line.ends else b""))
        text = clean_text(self.redactor.text(line.data.decode("utf-8", "replace")))
        if self._chatter.setdefault(rank, Chatter()).has(text):
            return None
        if line.begins:
            self._append(self._folder.merged_log, _encode(f"[rank {rank}] {text}\n"))
        return text

    def event(self, event: Event, *, silent: bool = False) -> str | None:
        """Write an event and, unless `silent`, the line that tells of it, which is returned if there is one."""
        self._append(self._folder.events, render_event(event).removeprefix(RECORD_SEPARATOR).encode())
        text = None if silent else narrate(event)
        if text is None:
            return None
        shown = clean_text(" ".join(self.redactor.text(text).split("\n")))
        self._append(self._folder.rank_log(event.rank), _encode(f"{shown}\n"))
        self._append(self._folder.merged_log, _encode(f"[rank {event.rank}] {shown}\n"))
        return shown

    def note(self, text: str) -> None:
        """Write what the supervisor has to say itself."""
        for line in self.redactor.text(text).splitlines():
            self._append(self._folder.merged_log, _encode(f"[ganger] {line}\n"))

    def separate(self, ranks: list[int], text: str) -> None:
        """Write a line between two attempts into every log."""
        self.note(text)
        for rank in ranks:
            self._append(self._folder.rank_log(rank), _encode(f"---- {text} ----\n"))

    def flush(self) -> None:
        """Write what is pending."""
        for path, data in self._pending.items():
            if data:
                self._write(path, bytes(data))
                data.clear()

    def close(self) -> None:
        """Write what is pending and close the files."""
        self.flush()
        while self._descriptors:
            os.close(self._descriptors.popitem()[1])

    def _append(self, path: Path, data: bytes) -> None:
        pending = self._pending.setdefault(path, bytearray())
        pending += data
        if len(pending) > _FLUSH_BYTES:
            self._write(path, bytes(pending))
            pending.clear()

    def _write(self, path: Path, data: bytes) -> None:
        try:
            descriptor = self._descriptors.get(path)
            if descriptor is None:
                path.parent.mkdir(parents=True, exist_ok=True)
                descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
                self._descriptors[path] = descriptor
            _write_all(descriptor, data)
        except OSError as error:
            self.problem = f"{path.name} is incomplete: {error.strerror}"


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "replace")
