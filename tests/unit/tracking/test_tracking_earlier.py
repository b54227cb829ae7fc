"""A training that was set aside before the server had taken all of it."""

from __future__ import annotations

from pathlib import Path

from scripted_store import ServerRun
from tracked_run import TrackedRun, close, model, step, tracked_run

from training.tracking.replay import replay


def train(tracked: TrackedRun, steps: int) -> None:
    tracker = tracked.tracker()
    tracker.open()
    for number in range(1, steps + 1):
        tracker.handle(step(number))
    tracker.handle(model(str(tracked.run.model)))
    close(tracker)


def set_aside(tracked: TrackedRun) -> None:
    kept = tracked.run.set_aside(1)
    kept.path.mkdir(parents=True)
    (tracked.run.path / "jobs").rename(kept.path / "jobs")
    if tracked.run.tracking.exists():
        tracked.run.tracking.rename(kept.tracking)


def steps_of(run: ServerRun) -> list[int]:
    return sorted(point.step for point in run.points if point.name == "step/loss")


def test_it_gets_its_own_run_and_model_when_the_server_is_back(tmp_path: Path) -> None:
    """K41, K43: nothing is lost, nothing is mixed, nothing stays RUNNING."""
    tracked = tracked_run(tmp_path)
    tracked.store.away = True
    train(tracked, steps=3)
    set_aside(tracked)
    tracked.store.away = False
    train(tracked, steps=5)
    first, second = tracked.store.runs.values()
    assert [steps_of(first), steps_of(second)] == [[1, 2, 3], [1, 2, 3, 4, 5]]
    assert [first.status, second.status] == ["FINISHED", "FINISHED"]
    assert first.models == [str(tracked.run.set_aside(1).model)]
    assert second.models == [str(tracked.run.model)]
    assert second.tags["ganger.previous_mlflow_run"] == "run0"


def test_replay_sends_the_older_training_first(tmp_path: Path) -> None:
    """K41."""
    tracked = tracked_run(tmp_path)
    tracked.store.away = True
    train(tracked, steps=3)
    set_aside(tracked)
    train(tracked, steps=5)
    tracked.store.away = False
    assert replay(tracked.run, make_store=tracked.store.connect) == ()
    assert [steps_of(run) for run in tracked.store.runs.values()] == [[1, 2, 3], [1, 2, 3, 4, 5]]
