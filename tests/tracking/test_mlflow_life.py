from __future__ import annotations

import warnings
from pathlib import Path

import pytest
from real_run import RealRun, abandon, close, epoch, evaluated, saved, step

from training.errors import PreflightError
from training.run.job import JobState
from training.tracking.registry import register_version
from training.tracking.replay import close_open_runs


def train(real: RealRun, model: Path) -> None:
    tracker = real.tracker()
    assert tracker.open()
    for number in range(1, 16):
        tracker.handle(step(number))
        if number % 5 == 0:
            tracker.handle(epoch(number // 5))
    tracker.handle(saved(model))
    report = close(tracker)
    assert (report.closed, report.notes) == (True, ())


def load(uri: str, address: str, monkeypatch: pytest.MonkeyPatch) -> object:
    import mlflow.pyfunc

    monkeypatch.setenv("MLFLOW_TRACKING_URI", address)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return mlflow.pyfunc.load_model(uri)


def test_a_training_from_the_first_event_to_the_registered_model(
    real: RealRun, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """K42, K43; and registering in a SQLite store with no address in the environment."""
    train(real, model)
    run = real.read()
    assert run.info.status == "FINISHED"
    assert run.data.params == {"train.epochs": "3"}
    assert real.points("step/loss") == [(number, 0.5) for number in range(1, 16)]
    assert real.points("val_loss") == [(5, 2.0), (10, 1.0), (15, 2 / 3)]
    assert real.points("epoch") == [(5, 1.0), (10, 2.0), (15, 3.0)]
    name = f"{real.plan.experiment}-model"
    first = register_version(real.ref, name, "champion", {"a": "b"})
    again = register_version(real.ref, name, "champion", {"a": "b"})
    assert first == again
    (version,) = real.client.search_model_versions(f"name = '{name}'")
    assert (str(version.version), version.run_id, version.tags) == ("1", real.ref.run_id, {"a": "b"})
    assert real.client.get_model_version_by_alias(name, "champion").version == version.version
    for uri in (real.ref.model_uri, first.model_uri, f"models:/{name}@champion"):
        assert uri is not None
        assert load(uri, real.plan.tracking_uri, monkeypatch).predict([3]) == [6]  # type: ignore[attr-defined]
    assert not list(model.parent.glob(".*")), "the staging folder of the upload is gone"


def test_a_model_of_a_second_training_is_the_second_version(real: RealRun, model: Path, tmp_path: Path) -> None:
    train(real, model)
    second = RealRun.of(real.plan.tracking_uri, tmp_path, name=f"{tmp_path.name}-2")
    train(second, model)
    name = f"{real.plan.experiment}-model"
    assert [register_version(each.ref, name, "champion", {}).version for each in (real, second)] == ["1", "2"]
    assert register_version(real.ref, name, None, {}).version == "1"
    assert str(real.client.get_model_version_by_alias(name, "champion").version) == "2"


def test_a_resumed_training_goes_on_in_its_run(real: RealRun) -> None:
    """K39, K41, K42: 3 epochs of 5 steps, 2 of which were checkpointed, then a resume for 2 more."""
    first = real.tracker()
    first.open()
    for number in range(1, 14):
        first.handle(step(number))
    for number in (1, 2):
        first.handle(epoch(number))
    close(first, JobState.FAILED, "The rank raised ValueError.")
    run = real.read()
    assert run.info.status == "FAILED"
    assert run.data.tags["ganger.failure"] == "rank 1: WorkerError: The rank raised ValueError."
    second = real.tracker(params={"train.epochs": "5"})
    second.open()
    assert real.read().info.status == "RUNNING"
    for number in range(11, 26):
        second.handle(step(number))
    for number in (3, 4, 5):
        second.handle(epoch(number))
    report = close(second)
    assert report.closed
    assert len(real.runs()) == 1
    assert [number for number, _ in real.points("step/loss")] == list(range(1, 26))
    assert [number for number, _ in real.points("loss")] == [5, 10, 15, 20, 25]
    run = real.read()
    assert (run.info.status, run.data.params) == ("FINISHED", {"train.epochs": "3"})
    assert run.data.tags["ganger.retried_param.train.epochs"] == "5"


def test_evaluate_adds_to_the_run_and_leaves_its_status(real: RealRun) -> None:
    """K43."""
    training = real.tracker()
    training.open()
    training.handle(epoch(3))
    close(training)
    for _ in range(2):
        evaluation = real.tracker("evaluate")
        assert evaluation.open() == real.ref.run_id
        evaluation.handle(evaluated(0.9))
        assert close(evaluation, JobState.SUCCEEDED).closed
    assert real.points("eval_accuracy") == [(15, 0.9)]
    assert real.read().info.status == "FINISHED"


def test_a_killed_supervisor_leaves_no_running_run(real: RealRun) -> None:
    """K43: the guard of the teardown."""
    tracker = real.tracker()
    tracker.open()
    tracker.handle(step(1))
    abandon(tracker)
    assert real.read().info.status == "RUNNING"
    assert any("KILLED" in note for note in close_open_runs(real.run, "KILLED"))
    assert real.read().info.status == "KILLED"
    assert real.points("step/loss") == [(1, 0.5)]
    assert close_open_runs(real.run, "KILLED") == ()


def test_a_cancelled_training_is_killed(real: RealRun) -> None:
    """K43."""
    tracker = real.tracker()
    tracker.open()
    close(tracker, JobState.CANCELLED, "stopped by ada")
    assert real.read().info.status == "KILLED"


def test_a_run_without_a_model_is_not_registered(real: RealRun) -> None:
    tracker = real.tracker()
    tracker.open()
    close(tracker)
    with pytest.raises(PreflightError, match="must have a logged model"):
        register_version(real.ref, "digits", None, {})
