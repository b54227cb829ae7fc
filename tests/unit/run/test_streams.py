"""From bytes in any pieces to whole lines."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.run.event import Heartbeat, render_event
from training.run.streams import SHOWN_LIMIT, Line, LineSplitter, clean_text


def _cut(data: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({cut % (len(data) + 1) for cut in cuts})
    return [data[start:end] for start, end in zip([0, *places], [*places, len(data)], strict=True)]


@given(data=st.binary(max_size=300), cuts=st.lists(st.integers(0, 300), max_size=20), limit=st.integers(1, 40))
def test_nothing_is_lost_however_the_bytes_come(data: bytes, cuts: list[int], limit: int) -> None:
    splitter = LineSplitter(limit=limit, event_limit=limit)
    lines = [line for piece in _cut(data, cuts) for line in splitter.feed(piece)] + splitter.close()
    joined = b"".join(line.data + (b"\n" if line.ends else b"") for line in lines)
    assert joined == data + (b"" if not data or data.endswith(b"\n") else b"\n")
    assert splitter.close() == []


@given(data=st.binary(max_size=300), cuts=st.lists(st.integers(0, 300), max_size=20))
def test_lines_are_the_same_however_the_bytes_come(data: bytes, cuts: list[int]) -> None:
    at_once, in_pieces = LineSplitter(), LineSplitter()
    whole = at_once.feed(data) + at_once.close()
    assert [line for piece in _cut(data, cuts) for line in in_pieces.feed(piece)] + in_pieces.close() == whole


def test_a_line_without_end_is_passed_on_in_pieces() -> None:
    splitter = LineSplitter(limit=4)
    assert splitter.feed(b"abcde") == [Line(data=b"abcde", ends=False)]
    assert splitter.feed(b"fg\nh") == [Line(data=b"fg", begins=False)]
    assert splitter.close() == [Line(data=b"h")]


def test_a_long_event_stays_whole() -> None:
    event = Heartbeat(rank=0, doing="x" * 100_000)
    splitter = LineSplitter()
    data = render_event(event).encode()
    lines = splitter.feed(data[:70_000]) + splitter.feed(data[70_000:])
    assert [line.split_event() for line in lines] == [(None, event)]


def test_output_before_an_event_keeps_its_bytes() -> None:
    event = Heartbeat(rank=0)
    [line] = LineSplitter().feed(b"\xff loss" + render_event(event).encode())
    assert line.split_event() == (Line(data=b"\xff loss"), event)


def test_half_an_event_is_ordinary_output() -> None:
    line = Line(data=b'\x1e{"event":"heartb')
    assert line.split_event() == (line, None)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        (" 10%|#   |\r 50%|##  |\r100%|####|", "100%|####|"),
        ("\x1b[1m\x1b[31mred\x1b[0m\ttab", "red\ttab"),
        ("\x1b]0;title\x07text", "text"),
        ("1/5\x08\x08\x08\x082/5", "1/52/5"),
        ("", ""),
        ("x" * 5_000, "x" * SHOWN_LIMIT + " … (5000 characters, cut)"),
    ],
)
def test_a_person_sees_what_a_terminal_would_show(text: str, shown: str) -> None:
    assert clean_text(text) == shown
