from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from scripted_store import ScriptedStore
from tracked_run import TrackedRun, tracked_run

from training.tracking.apply import RecordApplier
from training.tracking.sender import Sender, group_entries
from training.tracking.spool import Entry, Spool
from training.tracking.store import StoreAwayError, StoreRefusedError


class Bench:
    """A sender that is stepped by hand."""

    def __init__(self, tracked: TrackedRun) -> None:
        self.tracked = tracked
        self.store: ScriptedStore = tracked.store
        self.spool = Spool(tracked.job().spool)
        self.restart()
        plan = tracked.plan.model_dump(mode="json")
        self.spool.append({"op": "open", "t": 1, "owner": True, "plan": plan, "tags": {}})

    def restart(self) -> None:
        """Be another process that finds the journal."""
        self.spool.close()
        self.spool = Spool(self.tracked.job().spool)
        self.applier = RecordApplier(self.tracked.run, self.tracked.job(), self.store.connect)
        self.sender = Sender(self.spool, self.applier)

    def metrics(self, first: int, last: int, name: str = "step/loss", per_record: int = 1) -> None:
        for number in range(first, last + 1):
            values = {name if n == 0 else f"{name}{n}": 0.5 for n in range(per_record)}
            self.spool.append({"op": "metrics", "series": "step", "step": number, "t": number, "m": values})

    def steps(self) -> list[int]:
        return [point.step for point in self.store.only_run.points]


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tracked_run(tmp_path))
    yield bench
    bench.spool.close()


def test_many_steps_are_few_calls(bench: Bench) -> None:
    bench.metrics(1, 2500)
    bench.sender.tick(0.0)
    assert bench.store.calls.count("log_metrics") == 3
    assert bench.steps() == list(range(1, 2501))
    assert bench.spool.is_empty


def test_no_batch_is_larger_than_mlflow_takes(bench: Bench) -> None:
    """K40: 1001 metrics."""
    bench.metrics(1, 3, per_record=667)
    bench.sender.tick(0.0)
    assert bench.store.calls.count("log_metrics") == 3
    assert len(bench.store.only_run.points) == 2001
    assert not bench.applier.notes


def test_a_server_that_is_away_is_asked_less_and_less_and_gets_everything_in_the_end(bench: Bench) -> None:
    bench.metrics(1, 10)
    bench.store.away = True
    asked = []
    for second in range(60):
        before = len(bench.store.uris) + len(bench.store.calls)
        assert not bench.sender.tick(float(second))
        if len(bench.store.uris) + len(bench.store.calls) > before:
            asked.append(second)
    assert asked[:4] == [0, 1, 2, 4]
    assert all(later - earlier <= 8 for earlier, later in pairwise(asked))
    assert bench.sender.status.away == "connection refused"
    bench.store.away = False
    bench.sender.tick(70.0)
    assert bench.steps() == list(range(1, 11))
    assert bench.sender.status.away == ""


def test_a_lost_answer_doubles_nothing(bench: Bench) -> None:
    bench.metrics(1, 10)
    bench.store.answer_lost = 6
    for second in range(0, 100, 10):
        bench.sender.tick(float(second))
    assert len(bench.store.runs) == 1  # K39
    assert bench.steps() == list(range(1, 11))


def test_a_crash_after_any_call_doubles_and_loses_nothing(bench: Bench) -> None:
    bench.metrics(1, 5)
    bench.spool.append({"op": "tags", "tags": {"a": "b"}})
    bench.metrics(6, 9)
    bench.spool.append({"op": "close", "t": 9, "status": "FINISHED", "failure": ""})
    for calls_before_crash in range(12):
        bench.store.failures.extend([*[None] * calls_before_crash, KeyboardInterrupt("killed")])
        try:
            bench.sender.tick(0.0)
        except KeyboardInterrupt:
            bench.restart()
        bench.store.failures.clear()
    assert len(bench.store.runs) == 1
    assert bench.steps() == list(range(1, 10))
    assert bench.store.only_run.status == "FINISHED"


def test_one_refused_metric_does_not_take_the_others_along(bench: Bench) -> None:
    """K40: never fails, never loses the rest."""
    bench.store.refuse = {"bad"}
    bench.metrics(1, 2)
    bench.metrics(3, 3, name="bad")
    bench.metrics(4, 5)
    bench.sender.tick(0.0)
    assert bench.steps() == [1, 2, 4, 5]
    assert bench.spool.is_empty
    assert len(bench.applier.notes) == 1
    assert "refused" in bench.applier.notes[0]


def test_a_deleted_experiment_waits_for_a_person(bench: Bench) -> None:
    """K45."""
    bench.store.deleted_experiments.add("digits")
    bench.metrics(1, 3)
    bench.sender.tick(0.0)
    assert "restore" in bench.sender.status.away
    bench.store.deleted_experiments.clear()
    bench.sender.tick(100.0)
    assert bench.steps() == [1, 2, 3]


def test_records_of_another_version_become_a_note(bench: Bench) -> None:
    bench.spool.append({"op": "telepathy"})
    bench.spool.append({"op": "metrics", "oops": 1})
    bench.metrics(1, 1)
    bench.sender.tick(0.0)
    assert bench.steps() == [1]
    assert len(bench.applier.notes) == 2


def test_two_processes_never_send_the_same_journal(bench: Bench) -> None:
    other = Spool(bench.tracked.job().spool)
    assert other.lock()
    bench.sender.tick(0.0)
    assert not bench.store.calls
    other.close()
    bench.sender.tick(100.0)
    assert bench.store.calls


def test_only_neighbouring_metrics_are_sent_together() -> None:
    ops = ["metrics", "metrics", "tags", "metrics", "model", "close"]
    entries = [
        Entry(record={"op": op, "m": {"a": 1.0}} if op == "metrics" else {"op": op}, segment=1, end=n)
        for n, op in enumerate(ops)
    ]
    assert [len(group) for group in group_entries(entries)] == [2, 1, 1, 1, 1]


def test_the_two_ways_to_say_no_are_tracking_errors() -> None:
    assert StoreAwayError.retryable
    assert StoreRefusedError.exit_code == 75
