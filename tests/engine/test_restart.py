"""A rank dies in mid-epoch under a real supervisor: the gang is restarted and ends where an undisturbed one does."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from fakes.jobs import Job
from teams import ASYNCHRONOUS, MOMENTUM
from test_laws import TOLERANCE, largest_difference

from training.checkpoints.tensors import read_tensors
from training.plan.job import TrackingPlan
from training.plan.jobs import plan_train_job
from training.plan.run_plan import plan_run
from training.run.folder import RunFolder
from training.run.follow import stop
from training.run.job import JobState
from training.spec.pipeline import PipelineSpec
from training.steps.machine import read_machine

pytestmark = pytest.mark.engine

#: What is measured of each stage of a pipeline.
MEASURES = ("busy_s", "idle_s", "peak_mib")
#: Of a step, as `conftest.py` asks for them.
MICRO_BATCHES = 3


@pytest.fixture
def job(tmp_path):
    made = Job(RunFolder.of(f"run-{tmp_path.name}", tmp_path).job("train"))
    yield made
    stop(made.folder, "the test is over", wait_s=10)
    assert made.marked() == []


def plan_job(payload):
    """Return the job of a payload, as the step `train` plans it, without a tracker and a model to be left."""
    spec = PipelineSpec.model_validate(payload["spec"])
    machine = read_machine()
    paths = {name: Path(payload[name]) for name in ("base_dir", "dataset", "model_dir", "checkpoints")}
    tracking = TrackingPlan(tracking_uri="", experiment="", run_name="")
    job = plan_train_job(plan_run(spec, machine), spec, machine, run_id="restart", tracking=tracking, **paths)
    return job.model_copy(update={"tracking": None})


@pytest.mark.parametrize("team", ["horovod-3", 3])
def test_gang_goes_on_with_the_ranks_that_are_left(site, two, job, team):
    """K14, K35: SIGKILL of rank 1 of 3 at step 34: two go on from the checkpoint of step 30, to the same weights."""
    keeping = {"every_steps": 5, "keep": 20}
    more = {"checkpoint": keeping, "restarts": 1, "cluster": {"min_workers": 2}}
    payload = site.payload(team, "lost", "killed_once.py", MOMENTUM, **more)

    result = job.run(plan_job(payload))

    assert result.state is JobState.SUCCEEDED, job.merged[-4000:]
    assert "[ganger] going on with 2 of 3 ranks" in job.merged
    assert "going on after step 30 of 46" in job.merged
    assert sorted(result.exit_codes)[:2] == [0, 1]
    newest = max(site.checkpoints(team, "lost").glob("step-*")) / "state.safetensors"
    assert largest_difference(read_tensors(newest), two.newest("momentum")) < TOLERANCE


def test_killed_rank_is_named_and_the_training_goes_on(site, two, job):
    """K14, K17, K35: each failure has its budget, and a whole new gang goes on from the newest checkpoint.

    Rank 1 is killed, then raises what the spec calls temporary, then raises; what rank 0 says of its lost peer is not
    the failure.
    """
    budgets = {
        "restarts": 2,
        "user_restarts": 1,
        "failure_patterns": [{"pattern": "feature server", "treat_as": "temporary"}],
    }
    keeping = {"every_steps": 5, "keep": 20}
    payload = site.payload(2, "failing", "fails_thrice.py", MOMENTUM, checkpoint=keeping, resume=True, **budgets)

    result = job.run(plan_job(payload))

    assert result.state is JobState.SUCCEEDED, job.merged[-4000:]
    assert "killed by SIGKILL" in result.notes[0]
    assert all("rank 1 (worker) on 127.0.0.1 failed" in note for note in result.notes)
    assert ["failed at step 38: " in note for note in result.notes] == [False, True, False]
    assert ["failed at step 43: " in note for note in result.notes] == [False, False, True]
    for step, says in (
        (30, "restart 1 of 2 (infrastructure)"),
        (35, "[ganger] temporary: restart 2 of 2 (infrastructure)"),
        (40, "[ganger] user code: restart 1 of 1 (user)"),
    ):
        assert says in job.merged
        assert f"going on after step {step} of 46" in job.merged
    newest = max(site.checkpoints(2, "failing").glob("step-*")) / "state.safetensors"
    assert largest_difference(read_tensors(newest), two.newest("momentum")) < TOLERANCE
    assert result.values["steps"] == 46


def test_killed_worker_and_parameter_server_are_named_and_the_training_goes_on(site, job):
    """K14, K35: TensorFlow would go on with the worker that is left; the gang is all or nothing."""
    more = {"checkpoint": {"every_steps": 5, "keep": 20}, "resume": True, "restarts": 2}
    payload = site.payload(ASYNCHRONOUS, "killed", "kills_members.py", MOMENTUM, **more)

    result = job.run(plan_job(payload))

    assert result.state is JobState.SUCCEEDED, job.merged[-4000:]
    assert [note.partition(";")[0] for note in result.notes] == [
        "attempt 1: rank 1 (worker) on 127.0.0.1 failed: killed by SIGKILL",
        "attempt 2: rank 3 (ps) on 127.0.0.1 failed: killed by SIGKILL",
    ]
    assert "going on after step 30 of 46" in job.merged
    assert "going on after step 40 of 46" in job.merged
    assert result.values["steps"] == 46
    assert result.exit_codes == {0: 0, 1: 143, 2: 143, 3: 143}
    newest = max(site.checkpoints(ASYNCHRONOUS, "killed").glob("step-*")) / "state.safetensors"
    assert read_tensors(newest)["optimizer.0000"] == 2 * 46


def test_killed_stage_is_named_and_the_training_goes_on(site, two, job):
    """K14, K35: SIGKILL of the second stage at step 34; to the weights of a training that nobody disturbed."""
    more = {"checkpoint": {"every_steps": 5, "keep": 20}, "resume": True, "restarts": 1}
    payload = site.payload("pipeline-3", "killed", "kills_members.py", MOMENTUM, **more)

    result = job.run(plan_job(payload))

    assert result.state is JobState.SUCCEEDED, job.merged[-4000:]
    (note,) = result.notes
    assert note.startswith("attempt 1: rank 2 (stage 1) on 127.0.0.1 failed: killed by SIGKILL")
    assert "stage 1 serves at 127.0.0.1:" in job.merged
    assert "SessionOptions" not in job.merged  # TensorFlow prints it for its own developers
    assert "going on after step 30 of 46" in job.merged
    assert result.exit_codes == {0: 0, 1: 143, 2: 143}
    newest = max(site.checkpoints("pipeline-3", "killed").glob("step-*")) / "state.safetensors"
    assert largest_difference(read_tensors(newest), two.newest("momentum")) < TOLERANCE
    check_measured(job.folder)


def check_measured(folder):
    """Check what was measured of a pipeline of two stages: each is busy or idle, and the picture has all their work."""
    events = map(json.loads, folder.events.read_text().splitlines())
    told = [event["metrics"] for event in events if event["event"] == "measured"]
    assert told
    for metrics in told:
        stages = [{name: metrics[f"pipeline/stage_{stage}_{name}"] for name in MEASURES} for stage in range(2)]
        lasted = {stage["busy_s"] + stage["idle_s"] for stage in stages}
        assert max(lasted) == pytest.approx(min(lasted))
        assert max(lasted) <= metrics["pipeline/step_s"]
        idle = sum(stage["idle_s"] for stage in stages) / (2 * max(lasted))
        assert metrics["pipeline/bubble"] == pytest.approx(idle)
        assert all(stage["busy_s"] > 0 and stage["peak_mib"] > 30 for stage in stages)
    picture = ElementTree.parse(folder.timeline)
    titles = [title.text.split(":")[0] for title in picture.iter("{http://www.w3.org/2000/svg}title")]
    works = [f"{phase} of micro-batch {number}" for phase in ("forward", "backward") for number in range(MICRO_BATCHES)]
    assert sorted(titles) == sorted(2 * works)
