"""Members of gangs of MXNet die in mid-epoch, one an attempt: each is named, nothing hangs, and nothing is left."""

import itertools
import json
import re

import psutil
import pytest
from fakes.jobs import wait_until
from gluon_tasks import KEEPING, LAYERS, SINGLE
from teams import MOMENTUM
from test_gluon import newest
from test_laws import largest_difference
from test_restart import job, plan_job  # noqa: F401 - `job` is a fixture

from training import settings
from training.checkpoints.tensors import read_tensors
from training.run.follow import stop
from training.run.job import JobState

pytestmark = pytest.mark.engine
TOLERANCE = 1e-5
#: Team to the members that are killed at steps 34, 38 and 43, in the words of the headline.
MEMBERS = {
    "gluon-dist_sync-2": {1: "worker", 3: "server", 2: "scheduler"},
    "gluon-horovod-2": {1: "worker", 2: "rendezvous"},
}
STEPS = (34, 8, 8)
GRACE_S = 3.0
#: What the supervisor takes to see that a member died, and to start others, on a busy machine.
SLACK_S = 4.0


def payload_of(site, team, name, kills, **more):
    params = {**LAYERS, **MOMENTUM, "kills": kills}
    return site.payload(
        team, name, "gluon/killed.py", params, checkpoint=KEEPING, resume=True, stop_grace_s=GRACE_S, **more
    )


def read_told(job):  # noqa: F811
    return [json.loads(line) for line in job.folder.events.read_text().splitlines()]


def last_told_at(job):  # noqa: F811
    return max(event["time"] for event in read_told(job))


def leave_out_step(note):
    """Return a note without the step, which is in it if the machine was slow enough for one to be told."""
    return re.sub(r" at step \d+", "", note)


def list_pauses(job):  # noqa: F811
    """Return the seconds from the last that each attempt told to the first of the next."""
    events = read_told(job)
    begins = [event["event"] == "heartbeat" and "importing" in event["doing"] for event in events]
    pairs = zip(itertools.pairwise(events), itertools.pairwise(begins), strict=True)
    return [later["time"] - earlier["time"] for (earlier, later), new in pairs if new == (False, True)]


def list_of_store(job):  # noqa: F811
    """Return the processes of MXNet's store that this job started, whatever else they bear or not."""
    found = []
    for process in psutil.process_iter():
        try:
            variables = process.environ()
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
        if "DMLC_NUM_WORKER" in variables and variables.get(settings.JOB_DIR) == str(job.folder.path):
            found.append(process.pid)
    return found


@pytest.mark.parametrize("team", MEMBERS)
def test_killed_members_are_named_and_the_training_goes_on(site, gluon, job, team):  # noqa: F811
    """K14, K16, K35: until all restarts are used; a further try ends with the weights of one undisturbed process."""
    members = [f"rank {rank} ({role})" for rank, role in MEMBERS[team].items()]
    kills = list(zip(STEPS, MEMBERS[team], strict=False))
    plan = plan_job(payload_of(site, team, "killed", kills, restarts=len(kills) - 1))

    failed = job.run(plan)

    assert failed.state is JobState.FAILED, job.merged[-4000:]
    assert [leave_out_step(note.partition(";")[0]) for note in failed.notes] == [
        f"attempt {attempt}: {member} on 127.0.0.1 failed: killed by SIGKILL"
        for attempt, member in enumerate(members[:-1], start=1)
    ]
    assert (failed.failure.name, failed.failure.message) == (members[-1], "killed by SIGKILL")
    assert job.marked() == list_of_store(job) == []
    assert len(list_pauses(job)) == len(kills) - 1
    assert failed.ended_at - last_told_at(job) < GRACE_S + SLACK_S
    assert max(list_pauses(job)) < GRACE_S + SLACK_S

    result = job.run(plan)

    assert result.state is JobState.SUCCEEDED, job.merged[-4000:]
    for step in (30, 35, 40)[: len(kills)]:
        assert f"going on after step {step} of 46" in job.merged
    last = max(site.checkpoints(team, "killed").glob("step-*")) / "state.safetensors"
    assert largest_difference(read_tensors(last), newest(gluon, SINGLE, "momentum")) < TOLERANCE
    assert job.marked() == list_of_store(job) == []


@pytest.mark.parametrize("team", ["gluon-dist_sync-3", "gluon-horovod-3"])
def test_gang_goes_on_with_fewer_after_the_death_of_its_chief(site, gluon, job, team):  # noqa: F811
    """K14, K35: another process is the chief then, and goes on from the checkpoints of the first."""
    plan = plan_job(payload_of(site, team, "fewer", [(34, 0)], restarts=1, cluster={"min_workers": 2}))

    result = job.run(plan)

    assert result.state is JobState.SUCCEEDED, job.merged[-4000:]
    assert leave_out_step(result.notes[0]).startswith("attempt 1: rank 0 (worker) on 127.0.0.1 failed: killed by SIGK")
    assert "[ganger] going on with 2 of 3 ranks" in job.merged
    assert "going on after step 30 of 46" in job.merged
    last = max(site.checkpoints(team, "fewer").glob("step-*")) / "state.safetensors"
    assert largest_difference(read_tensors(last), newest(gluon, SINGLE, "momentum")) < TOLERANCE
    assert job.marked() == list_of_store(job) == []


def test_no_process_of_the_store_outlives_a_cancelled_training(site, job):  # noqa: F811
    """K16."""
    job.start(plan_job(payload_of(site, "gluon-dist_sync-2", "cancelled", [], epochs=5000)))
    job.wait_for_text(r"epoch 1/5000")
    assert len(list_of_store(job)) == 4
    stop(job.folder, "somebody pressed a button", wait_s=GRACE_S + SLACK_S)

    wait_until(lambda: not list_of_store(job))
    assert job.follow().state is JobState.CANCELLED
    assert job.marked() == []
