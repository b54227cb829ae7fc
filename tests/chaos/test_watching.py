"""Moments by what a run folder tells, and the stopwatch, on real processes that only wait."""

import subprocess
import sys
import time

import pytest

from tests.chaos.fault import Moment, Stage
from tests.chaos.stopwatch import Stopwatch
from tests.chaos.watched_run import MissedError, WatchedRun
from training.run.event import RECORD_SEPARATOR, Heartbeat, Step, render_event
from training.run.folder import RunFolder
from training.run.job import JobState, JobStatus, RankStatus


@pytest.fixture
def run(tmp_path):
    watched = WatchedRun(RunFolder.of("run-1", tmp_path))
    watched.train.path.mkdir(parents=True)
    return watched


@pytest.fixture
def sleepers():
    processes = [subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) for _ in range(2)]
    yield processes
    for process in processes:
        process.kill()
        process.wait()


def tell(run, *events, half=""):
    with run.train.events.open("a") as stream:
        stream.write("".join(render_event(event).removeprefix(RECORD_SEPARATOR) for event in events) + half)


def write_status(run, attempt=1, pids=(11, 12), ready=False, exit_codes=(None, None), state=JobState.STARTING):
    ranks = tuple(
        RankStatus(rank=rank, name=f"rank {rank}", host="here", pid=pid, ready=ready, exit_code=code)
        for rank, (pid, code) in enumerate(zip(pids, exit_codes, strict=True))
    )
    JobStatus(state=state, attempt=attempt, ranks=ranks).write(run.train.status)


def has_come(run, moment):
    try:
        run.wait_for(moment, is_over=lambda: True)
    except MissedError:
        return False
    return True


def test_starting_is_when_ranks_run_and_none_has_joined(run):
    assert not has_come(run, Moment(Stage.STARTING))
    write_status(run)
    assert has_come(run, Moment(Stage.STARTING))
    assert not has_come(run, Moment(Stage.STARTING, attempt=2))
    write_status(run, ready=True)
    assert not has_come(run, Moment(Stage.STARTING))


def test_a_step_is_there_when_it_or_a_later_one_was_told(run):
    tell(run, Step(rank=0, step=11, epoch=1), half='{"event":"step","rank":0,"time":0,"step":')
    assert not has_come(run, Moment(Stage.STEP, 12))
    with run.train.events.open("a") as stream:
        stream.write('13,"epoch":1}\n')
    assert has_come(run, Moment(Stage.STEP, 12))
    assert run.last_step() == 13


def test_steps_of_an_earlier_attempt_do_not_count(run):
    tell(run, Step(rank=0, step=30, epoch=2))
    write_status(run, attempt=2)
    assert not has_come(run, Moment(Stage.STEP, 20, attempt=2))


def test_a_checkpoint_is_there_as_soon_as_it_is_begun(run):
    assert not has_come(run, Moment(Stage.CHECKPOINT, 15))
    (run.folder.checkpoints / ".new-step-00000015-x1").mkdir(parents=True)
    assert has_come(run, Moment(Stage.CHECKPOINT, 15))


def test_saving_is_told_by_the_chief(run):
    tell(run, Heartbeat(rank=0, doing="saving the model"))
    assert has_come(run, Moment(Stage.SAVING))


def test_the_stopwatch_measures_a_kill(run, sleepers):
    write_status(run, pids=[process.pid for process in sleepers], ready=True)
    stopwatch = Stopwatch(run, rank=0)

    stopwatch.start()
    sleepers[0].kill()
    time.sleep(0.2)
    write_status(run, pids=[process.pid for process in sleepers], ready=True, exit_codes=(-9, None))
    time.sleep(0.2)
    sleepers[1].kill()
    timing = stopwatch.read()

    assert 0.2 <= timing.noticed_s < timing.gone_s
    assert 0.4 <= timing.gone_s < 5.0


def test_a_dead_supervisor_tells_nothing(run, sleepers):
    write_status(run, pids=[process.pid for process in sleepers], ready=True)
    stopwatch = Stopwatch(run, rank=None)

    stopwatch.start()
    for process in sleepers:
        process.kill()

    assert stopwatch.read().noticed_s is None
    assert stopwatch.read().gone_s < 5.0
