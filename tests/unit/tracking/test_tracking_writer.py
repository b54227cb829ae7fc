from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest
from scripted_store import failing_connect
from tracked_run import QUICK, TrackedRun, close, epoch, model, step, tracked_run

from training.run.event import Ready, Result
from training.run.job import JobState, TrackingRef
from training.tracking.replay import close_open_runs, replay
from training.tracking.store import StoreAwayError
from training.tracking.writer import JobTracker, open_tracker


@pytest.fixture
def tracked(tmp_path: Path) -> TrackedRun:
    return tracked_run(tmp_path)


def steps_of(tracked: TrackedRun, name: str = "step/loss") -> list[int]:
    return [point.step for point in tracked.store.only_run.points if point.name == name]


def test_a_training_becomes_one_finished_run(tracked: TrackedRun) -> None:
    """K39, K43."""
    tracker = tracked.tracker()
    assert tracker.open() == "run0"
    for rank in (0, 1):
        tracker.handle(Ready(rank=rank, pid=1, versions={"keras": f"3.{rank}"}))
        for number in range(1, 11):
            tracker.handle(step(number, rank=rank))
    tracker.handle(epoch(1, steps=10))
    tracker.handle(model())
    report = close(tracker)
    run = tracked.store.only_run
    assert report.closed
    assert report.notes == ()
    assert (run.status, run.models) == ("FINISHED", ["/run/model"])
    assert run.tags["ganger.version.keras"] == "3.0"
    assert run.params == {"train.epochs": "3"}
    assert steps_of(tracked) == list(range(1, 11))
    ref = TrackingRef.read(tracked.run.tracking)
    assert ref is not None
    assert ref.model_uri == "models:/m-0"


@pytest.mark.parametrize(("state", "status"), [(JobState.FAILED, "FAILED"), (JobState.CANCELLED, "KILLED")])
def test_a_training_that_did_not_succeed_says_why_and_logs_no_model(
    tracked: TrackedRun, state: JobState, status: str
) -> None:
    """K43."""
    tracker = tracked.tracker()
    tracker.open()
    tracker.handle(model())
    assert close(tracker, state, "The rank raised ValueError.").closed
    run = tracked.store.only_run
    assert (run.status, run.models) == (status, [])
    assert run.tags["ganger.failure"] == "rank 1 (worker): WorkerError: The rank raised ValueError."


def test_a_resume_repeats_no_point(tracked: TrackedRun) -> None:
    """K42: 3 epochs of 5 steps, then a resume from step 10 for 2 more epochs."""
    first = tracked.tracker()
    first.open()
    for number in range(1, 13):
        first.handle(step(number))
    first.handle(epoch(1))
    first.handle(epoch(2))
    close(first, JobState.FAILED, "killed")
    second = tracked.tracker()
    second.open()
    assert tracked.store.only_run.status == "RUNNING"
    for number in range(11, 26):
        second.handle(step(number, loss=0.4))
    for number in (2, 3, 4, 5):
        second.handle(epoch(number))
    report = close(second)
    assert steps_of(tracked) == list(range(1, 26))
    assert steps_of(tracked, "val_loss") == [5, 10, 15, 20, 25]
    assert [p.value for p in tracked.store.only_run.points if p.name == "epoch"] == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert any("3 points came again" in note for note in report.notes)
    assert tracked.store.only_run.statuses[-1] == "FINISHED"


def test_a_server_that_is_away_all_the_time_costs_nothing_and_gets_it_later(tracked: TrackedRun) -> None:
    tracked.store.away = True
    tracker = tracked.tracker()
    assert tracker.open() is None
    for number in range(1, 101):
        tracker.handle(step(number))
    tracker.handle(model())
    report = close(tracker)
    assert not report.closed
    (note,) = report.notes
    assert "105 tracking records" not in note  # no versions were told
    assert "104 tracking records are not sent yet. connection refused" in note
    assert "The model is kept in /run/model." in note
    assert not tracked.store.runs
    assert replay(tracked.run, make_store=tracked.store.connect)
    tracked.store.away = False
    assert replay(tracked.run, make_store=tracked.store.connect) == ()
    assert steps_of(tracked) == list(range(1, 101))
    assert tracked.store.only_run.status == "FINISHED"
    assert tracked.store.only_run.models == ["/run/model"]
    calls = len(tracked.store.calls)
    assert replay(tracked.run, make_store=tracked.store.connect) == ()
    assert len(tracked.store.calls) == calls


def test_the_next_task_of_the_run_sends_what_the_training_could_not(tracked: TrackedRun) -> None:
    tracked.store.away = True
    training = tracked.tracker()
    training.open()
    training.handle(step(1))
    close(training)
    tracked.store.away = False
    evaluation = tracked.tracker("evaluate")
    assert evaluation.open() == "run0"
    evaluation.handle(Result(rank=0, values={"metrics": {"accuracy": 0.9}}))
    assert close(evaluation).closed
    assert steps_of(tracked) == [1]
    assert tracked.store.only_run.status == "FINISHED"
    assert [p.name for p in tracked.store.only_run.points] == ["step/loss", "eval_accuracy"]


def test_a_server_that_hangs_holds_nobody(tracked: TrackedRun) -> None:
    tracked.store.gate.clear()
    tracker = tracked.tracker(limits=replace(QUICK, open_s=0.05, flush_s=0.1))
    began = time.monotonic()
    assert tracker.open() is None
    for number in range(1, 1001):
        tracker.handle(step(number))
    report = close(tracker)
    assert time.monotonic() - began < 3.0
    assert not report.closed
    assert "The time for it was over." in report.notes[0]
    tracked.store.gate.set()


def test_handling_an_event_takes_microseconds(tracked: TrackedRun) -> None:
    """Promise 8: 20 us measured; the bound leaves room for a busy machine."""
    tracked.store.away = True
    tracker = tracked.tracker()
    tracker.open()
    events = [step(number) for number in range(1, 5001)]
    began = time.process_time()
    for event in events:
        tracker.handle(event)
    assert (time.process_time() - began) / len(events) < 500e-6
    close(tracker)


def test_evaluate_adds_metrics_and_leaves_the_status(tracked: TrackedRun) -> None:
    """K42, K43: at the last step of the training; the same values again add nothing."""
    training = tracked.tracker()
    training.open()
    training.handle(epoch(3))
    close(training)
    for state in (JobState.FAILED, JobState.SUCCEEDED):
        evaluation = tracked.tracker("evaluate")
        evaluation.open()
        evaluation.handle(Result(rank=0, values={"metrics": {"accuracy": 0.93}}))
        close(evaluation, state)
    found = [(p.step, p.value) for p in tracked.store.only_run.points if p.name == "eval_accuracy"]
    assert found == [(15, 0.93)]
    assert tracked.store.only_run.status == "FINISHED"


def test_no_password_reaches_the_disk(tracked: TrackedRun, tmp_path: Path) -> None:
    """K18."""
    tracker = tracked.tracker(tracking_uri="http://ada:s3cr3t-XYZ@host:5000")
    tracker.open()
    tracker.handle(step(1))
    close(tracker, JobState.FAILED, "could not reach http://ada:s3cr3t-XYZ@host:5000")
    assert tracked.store.uris == ["http://ada:s3cr3t-XYZ@host:5000"]
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if b"s3cr3t-XYZ" in path.read_bytes()]
    run = tracked.store.only_run
    assert "s3cr3t-XYZ" not in repr((run.tags, run.params, run.texts))


def test_a_broken_store_is_a_note_and_no_failure(tracked: TrackedRun) -> None:
    plan, job = tracked.plan, tracked.job()
    broken = failing_connect(ZeroDivisionError("a bug"))
    tracker = open_tracker(plan, job, tracked.run, make_store=broken, limits=QUICK)
    assert tracker.open() is None
    tracker.handle(step(1))
    report = close(tracker)
    assert not report.closed
    assert any("ZeroDivisionError" in note for note in report.notes)


def test_a_full_disk_is_a_note_and_no_failure(tracked: TrackedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    tracker = tracked.tracker()
    tracker.open()
    tracker.handle(step(1))
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", _no_space)
        tracker.handle(step(2))
        tracker.handle(step(3))
    tracker.handle(step(4))
    report = close(tracker)
    assert report.closed
    assert steps_of(tracked) == [1, 2, 3, 4]
    assert any("No space left" in note for note in report.notes)


def _no_space(handle: int, data: bytes) -> int:
    raise OSError(28, "No space left on device")


def test_a_killed_supervisor_leaves_no_running_run(tracked: TrackedRun) -> None:
    """K43: the guard of the teardown; what was in the journal arrives too."""
    tracker = tracked.tracker()
    tracker.open()
    tracker.handle(step(1))
    _kill(tracker)
    notes = close_open_runs(tracked.run, "KILLED", make_store=tracked.store.connect)
    assert tracked.store.only_run.status == "KILLED"
    assert steps_of(tracked) == [1]
    assert any("KILLED" in note for note in notes)
    assert close_open_runs(tracked.run, "FAILED", make_store=tracked.store.connect) == ()
    assert tracked.store.only_run.status == "KILLED"


def test_a_guard_whose_server_is_away_leaves_the_end_in_the_journal(tracked: TrackedRun) -> None:
    """K43."""
    tracker = tracked.tracker()
    tracker.open()
    _kill(tracker)
    tracker.handle(step(7))
    tracked.store.away = True
    assert close_open_runs(tracked.run, "KILLED", make_store=tracked.store.connect)
    close_open_runs(tracked.run, "KILLED", make_store=tracked.store.connect)
    tracked.store.away = False
    replay(tracked.run, make_store=tracked.store.connect)
    assert tracked.store.only_run.statuses == ["KILLED"]
    assert steps_of(tracked) == [7]


def test_guarding_a_run_that_was_never_tracked_does_nothing(tracked: TrackedRun) -> None:
    connect = failing_connect(StoreAwayError("must not be asked"))
    assert close_open_runs(tracked.run, "KILLED", make_store=connect) == ()
    assert replay(tracked.run, make_store=connect) == ()


def test_the_page_of_the_run_explains_itself(tracked: TrackedRun) -> None:
    job = tracked.job()
    (job.path / "logs").mkdir(parents=True)
    job.merged_log.write_text("[rank 0] hello\n")
    job.rank_log(0).write_bytes(b"head" + b"x" * (3 << 20) + b"tail\xff")
    tracker = tracked.tracker()
    tracker.open()
    close(tracker)
    texts = tracked.store.only_run.texts
    assert texts["logs/train/merged.log"] == "[rank 0] hello\n"
    log = texts["logs/train/rank-0.log"]
    assert log.startswith("head")
    assert log.endswith("tail�")
    assert "bytes left out" in log
    assert len(log) < 2.1 * (1 << 20)


def _kill(tracker: JobTracker) -> None:
    """End the sending thread as a killed process would: without a last word."""
    tracker._stopped = True
    tracker._wake.set()
    assert tracker._thread is not None
    tracker._thread.join()
