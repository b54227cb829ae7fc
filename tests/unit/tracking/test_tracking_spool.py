from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from training.tracking.spool import Record, Spool

_values = st.one_of(st.none(), st.integers(-(2**53), 2**53), st.text(max_size=20), st.floats(allow_nan=False))
records = st.lists(st.dictionaries(st.text(max_size=8), _values, max_size=4), max_size=12)


@contextmanager
def folder() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="ganger-spool-"))
    try:
        yield path
    finally:
        shutil.rmtree(path)


@contextmanager
def opened(path: Path, **options: Any) -> Iterator[Spool]:
    spool = Spool(path, **options)
    try:
        yield spool
    finally:
        spool.close()


def contents(spool: Spool) -> list[Record]:
    return [entry.record for entry in spool.entries() if entry.record is not None]


@given(records, st.integers(1, 300), st.data())
def test_what_goes_in_comes_out_once(written: list[Record], segment_bytes: int, data: st.DataObject) -> None:
    with folder() as path:
        seen: list[Record] = []
        for record in written:
            with opened(path, segment_bytes=segment_bytes) as spool:
                spool.append(record)
                take = data.draw(st.integers(0, 3))
                batch = list(islice(spool.entries(), take))
                spool.acknowledge(batch)
                seen += [entry.record for entry in batch if entry.record is not None]
        with opened(path) as spool:
            assert seen + contents(spool) == written
            assert spool.pending() == len(written) - len(seen)


@given(records.filter(bool), st.data())
def test_a_crash_at_any_byte_loses_at_most_the_record_being_written(written: list[Record], data: st.DataObject) -> None:
    with folder() as path:
        ends = []
        with opened(path) as spool:
            for record in written:
                spool.append(record)
                ends.append((path / "journal-000001.jsonl").stat().st_size)
        file = path / "journal-000001.jsonl"
        cut = data.draw(st.integers(0, ends[-1]))
        file.write_bytes(file.read_bytes()[:cut])
        whole = sum(end <= cut for end in ends)
        with opened(path) as spool:
            assert contents(spool) == written[:whole]
            spool.append({"after": "crash"})
            after = contents(spool)
        # A record that lacked nothing but its line feed is whole.
        assert after in ([*written[:whole], {"after": "crash"}], [*written[: whole + 1], {"after": "crash"}])


@given(st.binary(max_size=60))
def test_garbage_in_the_journal_is_passed_over(garbage: bytes) -> None:
    with folder() as path:
        path.mkdir(exist_ok=True)
        (path / "journal-000001.jsonl").write_bytes(b'{"n":1}\n' + garbage.replace(b"\n", b"") + b'\x00\n{"n":2}\n')
        with opened(path) as spool:
            assert contents(spool) == [{"n": 1}, {"n": 2}]
            spool.acknowledge(list(spool.entries()))
            assert spool.is_empty


def test_a_lost_state_sends_again_and_loses_nothing(tmp_path: Path) -> None:
    with opened(tmp_path) as spool:
        spool.append({"n": 1})
        spool.acknowledge(list(spool.entries()))
    (tmp_path / "state.json").write_text("")
    with opened(tmp_path) as spool:
        assert contents(spool) == [{"n": 1}]


def test_sent_segments_are_deleted(tmp_path: Path) -> None:
    with opened(tmp_path, segment_bytes=40) as spool:
        for number in range(20):
            spool.append({"number": number})
        assert len(list(tmp_path.glob("journal-*"))) > 5
        spool.acknowledge(list(spool.entries()))
        assert len(list(tmp_path.glob("journal-*"))) == 1
        spool.append({"number": 20})
        assert contents(spool) == [{"number": 20}]


def test_the_last_step_of_a_series_survives_acknowledgement(tmp_path: Path) -> None:
    """K42: a resumed training finds where it was."""
    with opened(tmp_path) as spool:
        for step in (1, 2, 3):
            spool.append({"series": "step", "step": step})
        spool.acknowledge(list(islice(spool.entries(), 2)))
    with opened(tmp_path) as spool:
        assert spool.last_steps == {"step": 3}
        spool.acknowledge(list(spool.entries()))
    with opened(tmp_path) as spool:
        assert spool.is_empty
        assert spool.last_steps == {"step": 3}


def test_one_sender_at_a_time(tmp_path: Path) -> None:
    with opened(tmp_path) as first, opened(tmp_path) as second:
        assert first.lock()
        assert first.lock()
        assert not second.lock()
        first.unlock()
        assert second.lock()


def test_a_second_writer_appends_whole_lines(tmp_path: Path) -> None:
    with opened(tmp_path) as supervisor, opened(tmp_path) as teardown:
        supervisor.append({"n": 1})
        teardown.append({"n": 2})
        supervisor.append({"n": 3})
        assert contents(teardown) == [{"n": 1}, {"n": 2}, {"n": 3}]
