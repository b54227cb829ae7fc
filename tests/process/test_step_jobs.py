"""Tries of one step that come, go, and overlap: as Airflow's do when it takes a living one for dead."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from fakes.jobs import Job, is_gone, wait_until
from fakes.toys import ENDS, WORKS, toy

from training.errors import CancelledError, InfrastructureError
from training.plan.job import JobPlan
from training.run.folder import RunFolder
from training.run.follow import cancel
from training.run.job import JobResult, JobState
from training.run.standing import Standing, read_standing
from training.spec.loader import pipeline_from_mapping
from training.steps.context import StepContext
from training.steps.job import cancel_step, follow_job, join_job, run_job, start_job

SPEC = {
    "name": "p",
    "data": {"source": "digits"},
    "model": {"entrypoint": "training.models.mlp"},
    "train": {"engine": "tensorflow"},
}
THREE_STEPS = toy("ready()\nfor n in (1, 2, 3): step(n)\nsay('three steps')\nwhile True: time.sleep(60)")

MakeTry = Callable[[int], StepContext]


@pytest.fixture
def lines() -> list[str]:
    return []


@pytest.fixture
def make_try(job: Job, lines: list[str], tmp_path: Path) -> MakeTry:
    run = RunFolder(job.folder.path.parent.parent)
    file = pipeline_from_mapping(SPEC, tmp_path)
    return lambda number: StepContext(file=file, run=run, log=lines.append, try_number=number)


def _wait_for_rank(job: Job, attempt: int = 1) -> int:
    def is_ready() -> bool:
        return (
            job.folder.status.exists()
            and job.status.attempt == attempt
            and [r.ready for r in job.status.ranks] == [True]
        )

    wait_until(is_ready)
    pid = job.status.ranks[0].pid
    assert pid is not None
    return pid


def test_a_second_try_says_that_it_joins_and_at_which_step(job: Job, make_try: MakeTry, lines: list[str]) -> None:
    """K51."""
    plan = job.plan(THREE_STEPS)
    start_job(make_try(1), plan)
    wait_until(lambda: job.folder.status.exists() and job.status.step == 3)
    assert start_job(make_try(2), plan) == 0
    assert "train is running already: following it, at step 3. Its log so far:" in lines
    assert job.merged.count("attempt 1 of") == 1


def test_a_try_that_was_taken_for_dead_does_not_end_the_gang_of_the_next_one(
    job: Job, make_try: MakeTry, lines: list[str]
) -> None:
    """K51: Airflow ends the old process when the new one follows the gang already."""
    start_job(make_try(1), job.plan(WORKS))
    pid = _wait_for_rank(job)
    join_job(make_try(2), "train")
    cancel_step(make_try(1), "train", "the Airflow task train was ended")
    assert lines[-1] == "train goes on: try 2 follows it now."
    assert not is_gone(pid)
    assert read_standing(job.folder) is Standing.ACTIVE
    cancel_step(make_try(2), "train", "the Airflow task train was ended")
    assert is_gone(pid)
    assert read_standing(job.folder) is Standing.CANCELLED


def test_a_try_that_comes_while_the_gang_is_being_cancelled_waits_and_starts_it_anew(
    job: Job, make_try: MakeTry, lines: list[str]
) -> None:
    """K51: the old try was ended first; its gang takes a moment to go."""
    slow = toy("signal.signal(signal.SIGTERM, lambda *a: (time.sleep(0.4), os._exit(143)))\nready()\ntime.sleep(60)")
    start_job(make_try(1), job.plan(slow, limits={"stop_grace_s": 5}))
    _wait_for_rank(job)
    cancel(job.folder, "the Airflow task train was ended")
    assert read_standing(job.folder) is Standing.ENDING
    result = run_job(make_try(2), job.plan(ENDS))
    assert (result.state, result.attempts) == (JobState.SUCCEEDED, 2)
    assert any("is being cancelled: waiting for its end" in line for line in lines)
    archived = JobResult.read(job.folder.archived_result(1))
    assert archived is not None
    assert archived.state is JobState.CANCELLED


def test_whoever_cancels_does_not_wait_for_the_job_that_came_after(job: Job, make_try: MakeTry) -> None:
    """K51: the process of the old try still waits for the end when the next try has started the job anew."""
    start_job(make_try(1), job.plan(WORKS))
    _wait_for_rank(job)
    old = threading.Thread(target=cancel_step, args=(make_try(1), "train", "ended"))
    old.start()
    wait_until(lambda: read_standing(job.folder) is not Standing.ACTIVE)
    start_job(make_try(2), job.plan(WORKS))
    old.join(timeout=10)
    assert not old.is_alive()
    pid = _wait_for_rank(job, attempt=2)
    assert not is_gone(pid)
    assert read_standing(job.folder) is Standing.ACTIVE


def test_a_lost_job_is_told_from_a_running_one(job: Job, make_try: MakeTry) -> None:
    assert read_standing(job.folder) is Standing.ABSENT
    start_job(make_try(1), job.plan(WORKS))
    _wait_for_rank(job)
    os.kill(job.supervisor.pid, signal.SIGKILL)
    wait_until(lambda: read_standing(job.folder) is Standing.LOST)
    with pytest.raises(InfrastructureError, match="died without a result"):
        follow_job(make_try(1), "train")
    assert read_standing(job.folder) is Standing.FAILED


@pytest.mark.parametrize("number", [0, 2])
def test_a_try_that_has_not_joined_yet_can_cancel_what_an_older_one_started(
    number: int, job: Job, make_try: MakeTry
) -> None:
    """K16: marked as failed while it still plans; 0: the command line, where nobody counts."""
    start_job(make_try(min(number, 1)), job.plan(WORKS))
    _wait_for_rank(job)
    ctx = make_try(number)
    cancel_step(ctx, "train", "interrupted")
    with pytest.raises(CancelledError, match="interrupted"):
        follow_job(ctx, "train")


def test_a_job_can_be_run_again(job: Job, make_try: MakeTry) -> None:
    plan: JobPlan = job.plan(ENDS)
    first = run_job(make_try(1), plan)
    assert run_job(make_try(1), plan) == first
    assert run_job(make_try(1), plan, again=True).attempts == 2
