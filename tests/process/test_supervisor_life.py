"""Who starts, follows, kills: a job has one supervisor, survives its followers, and never outlives its supervisor."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from fakes.jobs import Job, is_gone, wait_until
from fakes.toys import ENDS, LEAVES_A_HIDDEN_CHILD, STUBBORN, WORKS, toy

from training.errors import LaunchError
from training.run.end import clean_up
from training.run.folder import JobFolder
from training.run.follow import cancel, follow, log_size, start_or_attach, stop
from training.run.job import JobResult, JobState
from training.run.lock import JobLock, is_supervised


def _wait_for_ranks(job: Job, count: int) -> list[int]:
    """Wait until all ranks are ready, and return their pids."""
    wait_until(lambda: job.folder.status.exists() and sum(rank.ready for rank in job.status.ranks) == count)
    return [rank.pid for rank in job.status.ranks if rank.pid is not None]


def test_two_starts_at_once_make_one_supervisor(job: Job) -> None:
    plan = job.plan(WORKS)
    found: list[bool] = []
    threads = [threading.Thread(target=lambda: found.append(job.start(plan))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [False, True, True, True]
    _wait_for_ranks(job, 1)
    assert job.merged.count("attempt 1 of") == 1


def test_a_retry_attaches_to_the_running_job(job: Job) -> None:
    """K19: and keeps its plan."""
    job.start(job.plan(WORKS))
    [pid] = _wait_for_ranks(job, 1)
    assert job.start(job.plan(ENDS))
    assert not is_gone(pid)


def test_a_succeeded_job_is_kept(job: Job) -> None:
    first = job.run(job.plan(ENDS))
    assert not job.start(job.plan(toy("sys.exit(3)")))
    assert job.follow() == first
    assert job.said[-1].endswith("is over already: succeeded. Its result is kept.")


def test_a_failed_job_starts_anew_with_the_next_attempt(job: Job) -> None:
    job.run(job.plan(toy("sys.exit(3)")))
    seen = log_size(job.folder)
    job.start(job.plan(toy("ready(); say(f'attempt {attempt}')")))
    lines: list[str] = []
    result = job.follow(on_line=lines.append, offset=seen)
    assert (result.state, result.attempts) == (JobState.SUCCEEDED, 2)
    assert "[rank 0] attempt 2" in lines
    assert not [line for line in lines if "exit code 3" in line]
    archived = JobResult.read(job.folder.archived_result(1))
    assert archived is not None
    assert archived.state is JobState.FAILED


def test_a_succeeded_job_runs_again_where_that_is_wanted(job: Job) -> None:
    job.run(job.plan(ENDS))
    assert not start_or_attach(job.folder, job.plan(ENDS), keep_succeeded=False, on_line=job.said.append)
    assert job.follow().attempts == 2
    assert job.said[-1].endswith("succeeded before: it is started again.")


def test_a_failed_job_stands_where_that_is_wanted(job: Job) -> None:
    job.run(job.plan(toy("sys.exit(3)")))
    assert not start_or_attach(job.folder, job.plan(ENDS), resume_failed=False)
    assert job.follow().state is JobState.FAILED


def test_ranks_die_with_a_killed_supervisor(job: Job) -> None:
    """K16: within 5 s, though they ignore SIGTERM; whoever follows is told, and ends what hid itself."""
    job.start(job.plan(STUBBORN, LEAVES_A_HIDDEN_CHILD))
    pids = _wait_for_ranks(job, 2)
    hidden = int(job.wait_for_text(r"hidden (\d+)")[1])
    job.supervisor.send_signal(signal.SIGKILL)
    wait_until(lambda: all(map(is_gone, pids)), 5)
    result = job.follow()
    assert is_gone(hidden)
    assert (result.state, result.tracking_closed) == (JobState.FAILED, False)  # the teardown closes it
    assert result.failure is not None
    assert result.failure.kind == "InfrastructureError"
    assert f"died without a result; ended what it left behind: process {hidden}" in result.failure.message


def test_the_next_start_ends_what_a_killed_supervisor_left(job: Job) -> None:
    """K16, K19: nobody followed meanwhile."""
    job.start(job.plan(LEAVES_A_HIDDEN_CHILD))
    _wait_for_ranks(job, 1)
    hidden = int(job.wait_for_text(r"hidden (\d+)")[1])
    supervisor = job.supervisor
    supervisor.send_signal(signal.SIGKILL)
    wait_until(lambda: is_gone(supervisor.pid))
    result = job.run(job.plan(ENDS))
    assert is_gone(hidden)
    assert (result.state, result.attempts) == (JobState.SUCCEEDED, 2)
    assert f"ended what an earlier try left behind: process {hidden}" in result.notes


def test_a_job_that_lost_its_follower_ends_itself(job: Job, tmp_path: Path) -> None:
    """The follower is killed as Airflow would do it, with its whole process group."""
    plan = job.plan(WORKS, limits={"lease_s": 1.5})
    (tmp_path / "plan.json").write_text(plan.model_dump_json())
    code = (
        "import sys; from pathlib import Path; from training.plan.job import JobPlan;"
        "from training.run.folder import JobFolder; from training.run.follow import follow, start_or_attach;"
        "folder = JobFolder(Path(sys.argv[1]));"
        "start_or_attach(folder, JobPlan.model_validate_json(Path(sys.argv[2]).read_text())); follow(folder)"
    )
    follower = subprocess.Popen(
        [sys.executable, "-c", code, str(job.folder.path), str(tmp_path / "plan.json")], start_new_session=True
    )
    pids = _wait_for_ranks(job, 1)
    time.sleep(2.0)  # longer than the lease: the follower keeps it up
    assert not is_gone(pids[0])
    os.killpg(follower.pid, signal.SIGKILL)
    follower.wait()
    assert not is_gone(pids[0]), "it outlives its follower"
    wait_until(lambda: job.folder.result.exists(), 5)
    result = JobResult.read(job.folder.result)
    assert result is not None
    assert result.state is JobState.CANCELLED
    assert "nobody has followed the job for 1.5 s" in job.merged
    assert is_gone(pids[0])


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_the_supervisor_cancels(job: Job, signum: signal.Signals) -> None:
    job.start(job.plan(WORKS))
    _wait_for_ranks(job, 1)
    supervisor = job.supervisor
    supervisor.send_signal(signum)
    result = job.follow()
    assert result.state is JobState.CANCELLED
    assert result.failure is not None
    assert result.failure.message == f"cancelled: {signum.name} to the supervisor"
    wait_until(lambda: is_gone(supervisor.pid))


def test_the_supervisor_exits_with_the_code_that_fits(job: Job) -> None:
    for program, code in (("ready()", 0), ("sys.exit(78)", 78), ("sys.exit(3)", 70)):
        folder = JobFolder(job.folder.path.with_name(f"job-{code}"))
        folder.path.mkdir(parents=True)
        folder.job.write_text(job.plan(toy(program)).model_dump_json())
        done = subprocess.run([sys.executable, "-m", "training.run.supervisor", str(folder.path)], check=False)
        assert done.returncode == code


def test_a_second_supervisor_leaves_the_first_alone(job: Job) -> None:
    job.start(job.plan(WORKS))
    [pid] = _wait_for_ranks(job, 1)
    done = subprocess.run(
        [sys.executable, "-m", "training.run.supervisor", str(job.folder.path)], check=False, capture_output=True
    )
    assert (done.returncode, done.stdout) == (0, f"{job.folder.job_id} has a supervisor already.\n".encode())
    assert not is_gone(pid)


def test_a_bug_of_the_supervisor_becomes_a_result(job: Job) -> None:
    job.folder.path.mkdir(parents=True)
    job.folder.job.write_text("{}")
    job.folder.status.write_text("not even JSON")
    done = subprocess.run(
        [sys.executable, "-m", "training.run.supervisor", str(job.folder.path)], check=False, capture_output=True
    )
    assert done.returncode == 75
    assert b"Traceback" in done.stderr
    result = JobResult.read(job.folder.result)
    assert result is not None
    assert result.failure is not None
    assert result.failure.message.startswith("the supervisor itself failed")
    assert not result.tracking_closed


def test_stop_ends_a_supervisor_that_does_not_answer(job: Job) -> None:
    job.start(job.plan(WORKS))
    pids = _wait_for_ranks(job, 1)
    supervisor = job.supervisor
    supervisor.suspend()
    result = stop(job.folder, "ganger stop", wait_s=0.3)
    assert result is not None
    assert (result.state, is_supervised(job.folder)) == (JobState.CANCELLED, False)
    assert is_gone(supervisor.pid)
    wait_until(lambda: all(map(is_gone, pids)))


def test_stopping_is_idempotent_and_leaves_ended_jobs_alone(job: Job) -> None:
    assert stop(job.folder, "nothing there") is None
    first = job.run(job.plan(ENDS))
    assert stop(job.folder, "too late") == first
    assert not job.folder.cancel.exists()


def test_an_old_wish_to_cancel_does_not_end_the_next_try(job: Job) -> None:
    job.run(job.plan(toy("sys.exit(3)")))
    cancel(job.folder, "long ago")
    assert job.run(job.plan(ENDS)).state is JobState.SUCCEEDED


def test_a_job_that_was_never_started_cannot_be_followed(job: Job) -> None:
    with pytest.raises(LaunchError, match="must have been started"):
        follow(job.folder)


def test_cleaning_up_leaves_a_living_job_alone(job: Job) -> None:
    job.start(job.plan(WORKS))
    [pid] = _wait_for_ranks(job, 1)
    assert clean_up(job.folder) is None
    assert not is_gone(pid)


def test_the_lock_is_the_supervisors_alone(job: Job) -> None:
    """A rank that outlives everything else must not hold it."""
    job.start(job.plan(LEAVES_A_HIDDEN_CHILD))
    _wait_for_ranks(job, 1)
    supervisor = job.supervisor
    supervisor.send_signal(signal.SIGKILL)
    wait_until(lambda: is_gone(supervisor.pid))
    lock = JobLock.acquire(job.folder)
    assert lock is not None
    lock.release()


def test_jobs_started_in_the_same_second_share_no_port(job: Job) -> None:
    """K04, K50: six gangs at once."""
    jobs = [Job(JobFolder(job.folder.path.with_name(f"job-{number}"))) for number in range(6)]
    program = "ready(); time.sleep(1.0); tell('result', values={'ports': os.environ['PORTS']})"
    for one in jobs:
        plan = one.plan(toy(program), ports=("a", "b"))
        process = plan.processes[0].model_copy(update={"env": {"PORTS": "{port:a} {port:b}"}})
        one.start(plan.model_copy(update={"processes": (process,)}))
    ports = [port for one in jobs for port in one.follow().values["ports"].split()]
    assert len(set(ports)) == 12
