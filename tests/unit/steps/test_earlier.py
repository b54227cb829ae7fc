"""A training that gives way to another one of the same run takes everything of its own along."""

from pathlib import Path

import pytest

from training.run.folder import JobFolder, RunFolder
from training.run.job import JobResult, JobState, TrackingRef
from training.spec.loader import pipeline_from_mapping
from training.steps import earlier
from training.steps.context import StepContext

SPEC = {
    "name": "p",
    "data": {"source": "digits"},
    "model": {"entrypoint": "training.models.mlp"},
    "train": {"engine": "tensorflow"},
}


@pytest.fixture
def ctx(tmp_path):
    lines = []
    return StepContext(file=pipeline_from_mapping(SPEC, tmp_path), run=RunFolder.of("p-1", tmp_path), log=lines.append)


def end(job: JobFolder, state: JobState) -> None:
    JobResult(state=state, started_at=0, ended_at=1).write(job.result)


def train(run: RunFolder, mlflow_run: str, state: JobState = JobState.SUCCEEDED) -> None:
    end(run.job("train"), state)
    end(run.job("prepare_data"), JobState.SUCCEEDED)
    end(run.job("evaluate"), JobState.SUCCEEDED)
    end(run.job("register_model"), JobState.SUCCEEDED)
    TrackingRef(tracking_uri="http://host", experiment_id="1", run_id=mlflow_run).write(run.tracking)
    for name in ("model/MLmodel", "checkpoints/step-00000003/meta.json", "plan.json", "run.json", "dataset.json"):
        path = run.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(mlflow_run)


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_what_was_trained_and_made_of_it_is_kept_apart_and_the_rest_stays(ctx):
    train(ctx.run, "a")
    assert earlier.set_training_aside(ctx)
    assert names(ctx.run.path) == {"jobs", "earlier", "run.json", "dataset.json"}
    assert names(ctx.run.path / "jobs") == {"prepare_data"}
    [kept] = ctx.run.earlier()
    assert kept.run_id == ctx.run.run_id
    assert names(kept.path) == {"jobs", "model", "mlflow.json", "plan.json"}
    assert names(kept.path / "jobs") == {"train", "evaluate", "register_model"}
    assert kept.job("train").job_id == ctx.run.job("train").job_id


def test_trainings_are_counted(ctx):
    for mlflow_run in ("a", "b", "c"):
        train(ctx.run, mlflow_run)
        earlier.set_training_aside(ctx)
    assert [TrackingRef.read(run.tracking).run_id for run in ctx.run.earlier()] == ["c", "b", "a"]
    newest, middle, oldest = ctx.run.earlier()
    assert newest.is_set_aside
    assert not ctx.run.is_set_aside
    assert newest.earlier() == [middle, oldest]
    assert oldest.earlier() == []


@pytest.mark.parametrize("state", [JobState.FAILED, JobState.CANCELLED])
def test_what_can_be_resumed_stays(ctx, state):
    """K35."""
    train(ctx.run, "a", state)
    assert not earlier.set_training_aside(ctx)
    assert ctx.run.earlier() == []
    assert (ctx.run.checkpoints / "step-00000003").is_dir()


def test_a_run_that_never_trained_has_nothing_to_set_aside(ctx):
    assert not earlier.set_training_aside(ctx)
    assert not ctx.run.path.exists()


@pytest.mark.parametrize("moves", range(6))
def test_a_kill_half_way_is_made_good_by_the_next_try(ctx, moves, monkeypatch):
    """K36: no checkpoint and no model of the old training is left for the new one, whenever the process dies."""
    train(ctx.run, "a")
    done = []
    move = earlier._move

    def move_some(source, target):
        if len(done) == moves:
            raise KeyboardInterrupt
        done.append(source)
        move(source, target)

    monkeypatch.setattr(earlier, "_move", move_some)
    with pytest.raises(KeyboardInterrupt):
        earlier.set_training_aside(ctx)
    monkeypatch.undo()
    assert earlier.set_training_aside(ctx)
    [kept] = ctx.run.earlier()
    assert names(kept.path) == {"jobs", "model", "mlflow.json", "plan.json"}
    assert names(kept.path / "jobs") == {"train", "evaluate", "register_model"}
    assert names(ctx.run.path) == {"jobs", "earlier", "run.json", "dataset.json"}


def test_a_home_folder_may_be_called_anything(tmp_path):
    assert not RunFolder.of("p-1", tmp_path / "earlier").is_set_aside
