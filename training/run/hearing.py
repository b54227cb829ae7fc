"""Hears the ranks of a gang: bytes become lines and events, exits become facts, all of it goes into the journal."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from training.launch.api import Gang, Output
from training.run.event import Done, Event, Heartbeat
from training.run.journal import Journal
from training.run.streams import Line, LineSplitter
from training.run.watch import RankWatch


class Hearing:
    """Turns what a gang does into what is known of its ranks."""

    def __init__(self, ranks: Mapping[int, RankWatch], journal: Journal, on_event: Callable[[Event], None]) -> None:
        self._ranks = ranks
        self._journal = journal
        self._on_event = on_event
        self._splitters: dict[tuple[int, str], LineSplitter] = {}

    def listen(self, gang: Gang, now: float, *, expected: bool) -> None:
        """Take in what happened since the last call; `expected` if the ranks were told to end."""
        exits = gang.poll()  # before reading, so that what an ended rank wrote is known when it is judged
        for output in gang.read():
            self._hear_output(output, now)
        for number, exit_code in exits.items():
            if self._ranks[number].is_running:
                self._close_lines(now, number)  # the half line that it died in
                self._ranks[number].hear_exit(exit_code, now, expected=expected)

    def close(self, now: float) -> None:
        """Take in the half lines that are left."""
        for number in self._ranks:
            self._close_lines(now, number)

    def _hear_output(self, output: Output, now: float) -> None:
        self._ranks[output.rank].hear_output(now)
        splitter = self._splitters.setdefault((output.rank, output.stream), LineSplitter())
        for line in splitter.feed(output.data):
            self._hear_line(output.rank, output.stream, line, now)

    def _close_lines(self, now: float, number: int) -> None:
        for (rank, stream), splitter in self._splitters.items():
            if rank == number:
                for line in splitter.close():
                    self._hear_line(rank, stream, line, now)

    def _hear_line(self, number: int, stream: str, line: Line, now: float) -> None:
        rank = self._ranks[number]
        text, event = line.split_event() if stream == "out" else (line, None)
        if text is not None:
            shown = self._journal.line(number, text)
            rank.lines.extend([] if shown is None else [shown])
        if event is None:
            return
        event = self._journal.redactor.event(event)
        repeats = isinstance(event, Heartbeat) and event.doing == rank.doing
        rank.hear_event(event, now)
        told = self._journal.event(event, silent=repeats)
        if told is not None:
            rank.lines.append(told)
        if not isinstance(event, Done):  # between a rank and its supervisor
            self._on_event(event)
