"""A tracker may be slow, or broken: the gang does not notice. Its thread is real, its server is not."""

from __future__ import annotations

import threading
from pathlib import Path

from fakes.stepping import World, epoch, ready

from training.run.event import Event
from training.run.job import JobResult, JobState
from training.run.redact import Redactor
from training.run.supervision import CLOSE_TIMEOUT_S, OPEN_TIMEOUT_S
from training.run.tracker_api import TrackingReport
from training.run.tracker_thread import TrackerThread

WAIT_S = 10.0


class FakeTracker:
    """Does what it is told, when it is let."""

    def __init__(self) -> None:
        self.may_open = threading.Event()
        self.may_close = threading.Event()
        self.may_open.set()
        self.may_close.set()
        self.breaks: set[str] = set()
        self.handled: list[Event] = []
        self.closed: JobResult | None = None

    def open(self) -> str | None:
        self.may_open.wait(WAIT_S)
        if "open" in self.breaks:
            raise OSError("no server with s3cr3t-XYZ")
        return "abc123"

    def handle(self, event: Event) -> None:
        if "handle" in self.breaks:
            raise ValueError("cannot handle it")
        self.handled.append(event)

    def close(self, state: JobState, result: JobResult) -> TrackingReport | None:
        self.may_close.wait(WAIT_S)
        if "close" in self.breaks:
            raise ValueError("cannot close")
        self.closed = result
        return TrackingReport(notes=("2 metrics were late",))


def _track(tmp_path: Path, tracker: FakeTracker) -> tuple[World, TrackerThread]:
    thread = TrackerThread(lambda: tracker, Redactor({"MY_TOKEN": "s3cr3t-XYZ"}))
    return World(tmp_path, ranks=1, tracker=thread), thread


def _end(world: World, thread: TrackerThread) -> JobResult:
    world.gang.end(0)
    world.tick_until(lambda: world.gang.closed)
    assert thread.closed.wait(WAIT_S)
    return world.run_to_end()


def test_ranks_know_their_run_and_the_tracker_hears_all(tmp_path: Path) -> None:
    tracker = FakeTracker()
    world, thread = _track(tmp_path, tracker)
    assert thread.opened.wait(WAIT_S)
    world.start()
    assert world.gang.order.env == {"MLFLOW_RUN_ID": "abc123"}
    told = epoch(0, 1, 10, loss=0.5)
    world.gang.tell(told)
    result = _end(world, thread)
    assert (result.mlflow_run_id, result.tracking_closed) == ("abc123", True)
    assert result.notes == ("2 metrics were late",)
    assert [event.event for event in tracker.handled] == ["ready", "epoch"]
    assert tracker.closed is not None
    assert tracker.closed.state is JobState.SUCCEEDED


def test_ranks_wait_for_their_run_but_not_for_ever(tmp_path: Path) -> None:
    tracker = FakeTracker()
    tracker.may_open.clear()
    world, thread = _track(tmp_path, tracker)
    world.tick()
    world.tick(OPEN_TIMEOUT_S - 1)
    assert not world.launcher.gangs
    world.tick(1.0)
    assert world.gang.order.env == {}
    tracker.may_open.set()
    world.gang.tell(ready(0))
    result = _end(world, thread)
    assert result.mlflow_run_id == "abc123", "it came later"
    assert result.notes[0].startswith("the tracking server has not answered yet")


def test_a_tracker_that_breaks_everywhere_becomes_notes(tmp_path: Path) -> None:
    tracker = FakeTracker()
    tracker.breaks = {"open", "handle", "close"}
    world, thread = _track(tmp_path, tracker)
    assert thread.opened.wait(WAIT_S)
    world.start()
    world.gang.tell(epoch(0, 1, 10, loss=0.5))
    world.gang.tell(epoch(0, 2, 20, loss=0.4))
    result = _end(world, thread)
    assert (result.state, result.tracking_closed, result.mlflow_run_id) == (JobState.SUCCEEDED, False, None)
    assert result.notes == (
        "tracking could not be opened: OSError: no server with ***",
        "tracking lost the ready event of rank 0: ValueError: cannot handle it",
        "tracking lost the epoch event of rank 0: ValueError: cannot handle it",
        "tracking could not be closed: ValueError: cannot close",
    )


def test_a_tracker_that_cannot_even_be_made(tmp_path: Path) -> None:
    def refuse() -> FakeTracker:
        raise ImportError("No module named 'mlflow'")

    thread = TrackerThread(refuse, Redactor({}))
    world = World(tmp_path, ranks=1, tracker=thread)
    assert thread.opened.wait(WAIT_S)
    world.start()
    result = _end(world, thread)
    assert result.state is JobState.SUCCEEDED
    assert result.notes == ("tracking could not be opened: ImportError: No module named 'mlflow'",)


def test_a_tracker_that_never_ends_is_left_behind(tmp_path: Path) -> None:
    tracker = FakeTracker()
    tracker.may_close.clear()
    world, thread = _track(tmp_path, tracker)
    assert thread.opened.wait(WAIT_S)
    world.start()
    world.gang.end(0)
    world.tick_until(lambda: world.gang.closed)
    world.tick(1.0)
    assert world.status.state is JobState.STOPPING
    world.tick(CLOSE_TIMEOUT_S)
    assert world.is_over
    assert not world.result.tracking_closed
    assert "tracking was not done" in world.result.notes[-1]
    tracker.may_close.set()
