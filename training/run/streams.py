"""From the bytes of a rank to whole lines. Pure: knows neither files nor processes."""

from __future__ import annotations

import re
from dataclasses import dataclass

from training.run.event import RECORD_SEPARATOR, Event, parse_line

#: A line that grows beyond this is passed on in pieces, so that a rank that never ends a line cannot eat the memory.
LINE_LIMIT = 1 << 16
#: Events must stay whole to be understood; tracebacks and results may be long.
EVENT_LIMIT = 1 << 22
#: So much of a line is shown in the merged log; the rank's own log has all of it.
SHOWN_LIMIT = 2_000

_SEPARATOR = RECORD_SEPARATOR.encode()
_TERMINAL = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07]*\x07|[\x00-\x08\x0b-\x1f\x7f]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line of output, or a piece of a very long one.

    Attributes:
        data: Its bytes, without the line feed.
        begins: Whether a line begins with it.
        ends: Whether the line ends with it.
    """

    data: bytes
    begins: bool = True
    ends: bool = True

    def split_event(self) -> tuple[Line | None, Event | None]:
        """Return the ordinary output in it, and the event that it carries; either may be missing."""
        before, separator, _ = self.data.partition(_SEPARATOR)
        if not separator:
            return self, None
        _, event = parse_line(self.data[len(before) :].decode("utf-8", "replace"))
        if event is None:  # half an event of a rank that died in it
            return self, None
        return (Line(data=before, begins=self.begins) if before else None), event


class LineSplitter:
    r"""Cuts a stream of bytes into lines.

    >>> splitter = LineSplitter()
    >>> [line.data for line in splitter.feed(b"one\ntw")], [line.data for line in splitter.feed(b"o\n")]
    ([b'one'], [b'two'])
    """

    def __init__(self, limit: int = LINE_LIMIT, event_limit: int = EVENT_LIMIT) -> None:
        self._limit = limit
        self._event_limit = event_limit
        self._rest = b""
        self._begins = True

    def feed(self, data: bytes) -> list[Line]:
        """Take bytes and return the lines that they complete."""
        *whole, self._rest = (self._rest + data).split(b"\n")
        lines = [self._cut(part, ends=True) for part in whole]
        limit = self._event_limit if _SEPARATOR in self._rest else self._limit
        if len(self._rest) > limit:
            lines.append(self._cut(self._rest, ends=False))
            self._rest = b""
        return lines

    def close(self) -> list[Line]:
        """Return the half line that the stream ended with, if any."""
        rest, self._rest = self._rest, b""
        return [self._cut(rest, ends=True)] if rest or not self._begins else []

    def _cut(self, data: bytes, *, ends: bool) -> Line:
        line = Line(data=data, begins=self._begins, ends=ends)
        self._begins = ends
        return line


def clean_text(text: str, limit: int = SHOWN_LIMIT) -> str:
    r"""Return a line as a person shall see it: what a terminal would show of it, without control characters, cut.

    >>> clean_text("10 %\r50 %\r\x1b[32m100 %\x1b[0m\r")
    '100 %'
    """
    shown = next((part for part in reversed(text.split("\r")) if part), "")
    shown = _TERMINAL.sub("", shown)
    return shown if len(shown) <= limit else f"{shown[:limit]} … ({len(text)} characters, cut)"
