from __future__ import annotations

from pathlib import Path

import pytest
from mlflow_server import MlflowServer
from real_run import RealRun, close, epoch, saved, step

from training.errors import PreflightError
from training.tracking.preflight import check_tracking
from training.tracking.replay import close_open_runs


def steps(real: RealRun) -> list[int]:
    return [number for number, _ in real.points("step/loss")]


def test_a_server_killed_in_the_middle_gets_everything_once(server: MlflowServer, tmp_path: Path, model: Path) -> None:
    """Promise 8: nothing lost, nothing doubled, nothing heard of it by the trainings. K44: the model is kept."""
    ended, going_on = (RealRun.of(server.uri, tmp_path, name=name) for name in ("ended", "going-on"))
    trackers = [ended.tracker(), going_on.tracker()]
    for tracker in trackers:
        assert tracker.open()
    for number in range(1, 1001):
        for tracker in trackers:
            tracker.handle(step(number))
        if number == 500:
            server.kill()
    try:
        trackers[0].handle(epoch(1, steps=1000))
        trackers[0].handle(saved(model))
        report = close(trackers[0])
        assert not report.closed
        assert f"The model is kept in {model}." in report.notes[0]
        with pytest.raises(PreflightError, match="must answer within"):
            check_tracking(server.uri, "ended")
    finally:
        server.launch()
        server.wait()
    trackers[1].handle(step(1001))
    assert close(trackers[1]).closed
    assert close_open_runs(ended.run, "KILLED") == ()
    assert steps(ended) == list(range(1, 1001))
    assert steps(going_on) == list(range(1, 1002))
    assert ended.points("loss") == [(1000, 1.0)]
    assert ended.ref.model_uri is not None
    for real in (ended, going_on):
        assert real.read().info.status == "FINISHED"
        assert len(real.runs()) == 1
