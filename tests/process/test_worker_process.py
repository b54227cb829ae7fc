"""Real worker processes under a real supervisor, with tasks that end in every way."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from fakes import worker_tasks
from fakes.jobs import Job

from training.errors import GangerError, InfrastructureError, SpecError, WorkerError
from training.plan.job import JobPlan
from training.run.follow import raise_for
from training.run.job import JobState

MAIN = """
import sys
from training import worker
worker.TASKS["toy_task"] = "fakes.worker_tasks"
sys.exit(worker.main())
"""
TESTS = Path(worker_tasks.__file__).parents[1]


def _plan(job: Job, does: str, ranks: int = 1, **options: object) -> JobPlan:
    plan = job.plan(*[(sys.executable, "-c", MAIN)] * ranks, payload={"task": "toy_task", "does": does}, **options)
    env = {"PYTHONPATH": str(TESTS)}
    return plan.model_copy(update={"processes": tuple(p.model_copy(update={"env": env}) for p in plan.processes)})


def test_a_task_that_is_done(job: Job) -> None:
    result = job.run(_plan(job, "succeed"))
    assert (result.state, result.values) == (JobState.SUCCEEDED, {"attempt": "1"})


@pytest.mark.parametrize(
    ("does", "error_class", "code", "first_line"),
    [
        ("raise", WorkerError, 70, "rank 0 (worker) on 127.0.0.1 failed at step 2: ValueError: boom (exit code 70)"),
        (
            "fill_disk",
            InfrastructureError,
            75,
            "rank 0 (worker) on 127.0.0.1 failed: OSError: [Errno 28] No space left",
        ),
        ("import", SpecError, 78, "rank 0 (worker) on 127.0.0.1 failed: ModuleNotFoundError: No module named 'no_such"),
        ("exit", WorkerError, 3, "rank 0 (worker) on 127.0.0.1 failed: SystemExit: the code called sys.exit(3) before"),
        ("exit_256", WorkerError, 70, "rank 0 (worker) on 127.0.0.1 failed: SystemExit: the code called sys.exit(256)"),
        ("interrupt", WorkerError, 70, "rank 0 (worker) on 127.0.0.1 failed: KeyboardInterrupt: "),
        ("cancel", WorkerError, 70, "rank 0 (worker) on 127.0.0.1 failed: asyncio.exceptions.CancelledError: a future"),
    ],
)
def test_a_task_that_fails(job: Job, does: str, error_class: type[GangerError], code: int, first_line: str) -> None:
    result = job.run(_plan(job, does))
    assert result.exit_codes == {0: code}
    with pytest.raises(error_class) as caught:
        raise_for(result)
    lines = str(caught.value).splitlines()
    assert lines[0].startswith(first_line)
    assert lines[1] == "Traceback (most recent call last):"
    assert "worker_tasks.py" in lines[2], "frames of ours are left out"


def test_a_rank_that_vanishes_in_its_task_is_no_success(job: Job) -> None:
    """K15: `os._exit(0)` in user code."""
    result = job.run(_plan(job, "vanish"))
    assert result.exit_codes == {0: 0}
    with pytest.raises(WorkerError, match="ended with exit code 0 before its task was done"):
        raise_for(result)


def test_a_mistake_in_the_spec_is_told_without_a_traceback(job: Job) -> None:
    result = job.run(_plan(job, "two_mistakes"))
    with pytest.raises(SpecError) as caught:
        raise_for(result)
    assert str(caught.value).splitlines()[1:] == [
        "train.epochs: must be at least 1. Received: 0.",
        "train.batch_size: must be at least 1. Received: 0.",
    ]
    assert "Traceback" not in job.merged


def test_a_rank_that_is_told_to_end_cleans_up(job: Job) -> None:
    job.start(_plan(job, "work"))
    job.wait_for_text(r"\[rank 0\] working")
    result = job.follow(should_stop=lambda: True)
    assert result.exit_codes == {0: 143}
    assert "[rank 0] cleaned up" in job.merged


def test_what_fails_after_sigterm_is_no_failure(job: Job) -> None:
    """K14: a peer that ended first makes a collective raise, in place of our own exception; seen with TensorFlow."""
    job.start(_plan(job, "fail_when_told_to_end"))
    job.wait_for_text(r"\[rank 0\] working")
    result = job.follow(should_stop=lambda: True)
    assert result.exit_codes == {0: 143}
    assert "after SIGTERM: ConnectionError: socket closed" in job.merged


def test_a_rank_that_is_stuck_in_native_code_ends_all_the_same(job: Job) -> None:
    """K14: as in a collective operation, waiting for a dead peer. Well before the grace period is over."""
    job.start(_plan(job, "get_stuck", limits={"stop_grace_s": 15.0}))
    job.wait_for_text(r"\[rank 0\] stuck")
    result = job.follow(should_stop=lambda: True)
    assert result.exit_codes == {0: 143}
    assert result.ended_at - result.started_at < 10


def test_ending_a_process_pool_does_not_end_the_rank(job: Job) -> None:
    """Forked children inherit signal handlers; theirs must not reach the parent."""
    assert job.run(_plan(job, "end_forked_child")).state is JobState.SUCCEEDED


def test_a_stalled_rank_shows_its_stack(job: Job) -> None:
    """K14 (d)."""
    result = job.run(_plan(job, "work", limits={"stall_timeout_s": 1.0}))
    assert result.state is JobState.FAILED
    assert "in work" in job.folder.rank_log(0).read_text()
    assert result.failure is not None
    assert "it gave no sign of life for 1." in result.failure.message


def test_every_rank_knows_its_number(job: Job) -> None:
    result = job.run(_plan(job, "say_rank", ranks=2))
    assert result.state is JobState.SUCCEEDED
    assert "[rank 0] I am 0 of 2" in job.merged
    assert "[rank 1] I am 1 of 2" in job.merged
