"""The step that brings up one stage, as far as it decides before anything is started."""

import pytest

from training.errors import LaunchError
from training.run.folder import RunFolder
from training.run.follow import follow_rank, log_size
from training.run.job import JobResult, JobState
from training.spec.loader import pipeline_from_mapping
from training.steps.context import StepContext
from training.steps.stage import check_turn, start_stage


def make_context(folder, lines, **train):
    spec = {
        "name": "p",
        "data": {"source": "digits"},
        "model": {"entrypoint": "training.models.mlp"},
        "train": {"engine": "tensorflow", **train},
    }
    return StepContext(file=pipeline_from_mapping(spec, folder), run=RunFolder.of("p-1", folder), log=lines.append)


def test_a_stage_that_the_spec_of_a_run_lacks_is_none(tmp_path):
    """A DAG run may be triggered with another strategy."""
    lines = []
    assert start_stage(make_context(tmp_path, lines, strategy="single"), 0) == {}
    two = {"strategy": "pipeline", "pipeline": {"stages": 2}}
    assert start_stage(make_context(tmp_path, lines, **two), 2) == {}
    assert lines == [f"This run has no stage {stage}: nothing is brought up." for stage in (0, 2)]
    assert not (tmp_path / "runs").exists()


def test_a_training_that_has_succeeded_is_left_as_it_is(tmp_path):
    lines = []
    ctx = make_context(tmp_path, lines, strategy="pipeline", pipeline={"stages": 2})
    result = ctx.run.job("train").result
    result.parent.mkdir(parents=True)
    JobResult(state=JobState.SUCCEEDED, started_at=0, ended_at=1).write(result)

    assert start_stage(ctx, 1) == {"stage": 1, "rank": 2}
    assert "The training has succeeded." in lines[0]


@pytest.mark.parametrize(("called", "stage"), [(1, 1), (2, 1), (None, 3)])
def test_a_stage_comes_when_those_before_it_are_up(called, stage):
    check_turn(called, stage)


def test_an_order_with_a_gap_is_refused():
    """K31."""
    with pytest.raises(
        LaunchError, match=r"stage 2 must come after stage 1. Received: a pipeline in which stage 1 was"
    ):
        check_turn(1, 2)


def test_a_stage_tells_its_own_log_without_that_of_earlier_attempts(tmp_path):
    folder = RunFolder.of("p-1", tmp_path).job("train")
    log, lines = folder.rank_log(2), []
    log.parent.mkdir(parents=True)
    log.write_text("of the first attempt\n")
    seen = log_size(folder, 2)
    with log.open("a") as stream:
        stream.write("I0000 00:00:1796252811.82   25463 grpc_server_lib.cc:464] Started server\nserves\n")
    JobResult(state=JobState.FAILED, started_at=0, ended_at=1).write(folder.result)

    assert follow_rank(folder, 2, on_line=lines.append, offset=seen).state is JobState.FAILED
    assert lines == ["serves"]
    assert log_size(folder, 1) == 0
