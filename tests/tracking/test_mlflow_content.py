"""What is in MLflow after a training: the model, the page's artifacts, values at the limits."""

from __future__ import annotations

from pathlib import Path

import pytest
from real_run import RealRun, close, epoch, saved

from training.run.event import Ready, Step
from training.run.job import JobState
from training.tracking.evaluation import log_metrics


def test_the_model_is_a_logged_model_of_the_run(real: RealRun, model: Path) -> None:
    before = (model / "MLmodel").read_text()
    for _ in range(2):
        tracker = real.tracker()
        tracker.open()
        tracker.handle(epoch(3))
        tracker.handle(saved(model))
        assert close(tracker).closed
    model_id = str(real.ref.model_uri).removeprefix("models:/")
    logged = real.client.get_logged_model(model_id)
    run = real.read()
    assert (str(logged.status), logged.source_run_id) == ("READY", real.ref.run_id)
    assert [output.model_id for output in run.outputs.model_outputs] == [model_id]
    assert {metric.key: metric.value for metric in logged.metrics}["val_loss"] == 2 / 3
    assert {a.path for a in real.client.list_logged_model_artifacts(model_id)} >= {"MLmodel", "doubles.py"}
    assert (model / "MLmodel").read_text() == before
    # What was told twice is there once: the same model, the same points.
    assert len(real.client.search_logged_models([real.ref.experiment_id])) == 1
    assert real.points("val_loss") == [(15, 2 / 3)]


def test_a_broken_upload_is_done_again(real: RealRun, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """K44: the model is kept, the path is told, and one logged model comes of it in the end."""
    from mlflow.tracking.client import MlflowClient

    def fail(*_: object) -> None:
        raise PermissionError(13, "Permission denied", "/artifacts")

    tracker = real.tracker()
    tracker.open()
    tracker.handle(saved(model))
    with monkeypatch.context() as patch:
        patch.setattr(MlflowClient, "log_model_artifacts", fail)
        report = close(tracker)
    assert not report.closed
    assert "Permission denied" in report.notes[0]
    assert f"The model is kept in {model}." in report.notes[0]
    assert real.read().info.status == "FINISHED"
    from training.tracking.replay import replay

    assert replay(real.run) == ()
    (logged,) = real.client.search_logged_models([real.ref.experiment_id])
    assert (str(logged.status), real.ref.model_uri) == ("READY", f"models:/{logged.model_id}")


def test_the_page_of_the_run_explains_itself(real: RealRun) -> None:
    job = real.run.job("train")
    job.rank_log(0).parent.mkdir(parents=True)
    job.merged_log.write_text("[rank 0] hello\n")
    job.rank_log(0).write_text("hello\n")
    tracker = real.tracker(tags={"dag_id": "digits", "mlflow.note.content": "Handwritten digits."})
    tracker.open()
    tracker.handle(Ready(rank=0, pid=1, versions={"tensorflow": "2.18.1"}))
    assert close(tracker, JobState.FAILED, "rank 1 raised").closed
    run = real.read()
    assert run.data.tags["ganger.version.tensorflow"] == "2.18.1"
    assert run.data.tags["mlflow.note.content"] == "Handwritten digits."
    assert run.data.tags["dag_id"] == "digits"
    paths = [artifact.path for artifact in real.client.list_artifacts(run.info.run_id, "logs/train")]
    assert paths == ["logs/train/merged.log", "logs/train/rank-0.log"]


def test_metrics_are_added_after_the_training(real: RealRun) -> None:
    tracker = real.tracker()
    tracker.open()
    tracker.handle(epoch(2))
    close(tracker)
    for _ in range(2):
        log_metrics(real.ref, {"accuracy": 0.95, "f1": 0.5})
    assert (real.points("eval_accuracy"), real.points("eval_f1")) == ([(10, 0.95)], [(10, 0.5)])
    assert real.read().info.status == "FINISHED"


def test_odd_names_and_values_are_taken(real: RealRun) -> None:
    """K40."""
    tracker = real.tracker(params={"bad@name": "1"}, tags={"mlflow.note.content": "n" * 9000})
    assert tracker.open()
    tracker.handle(Step(rank=0, step=1, epoch=1, metrics={f"m{n}": float(n) for n in range(1001)}))
    tracker.handle(Step(rank=0, step=2, epoch=1, metrics={"loss": float("nan"), "big": float("inf"), "µ@1": 0.5}))
    report = close(tracker)
    assert (report.closed, report.notes) == (True, ())
    run = real.read()
    assert len(run.data.params) == 1
    assert len(run.data.metrics) == 1004
    assert "shortened from 9000 characters" in run.data.tags["mlflow.note.content"]
