"""A job stepped by hand, tick by tick: no processes, no sleeps."""

from __future__ import annotations

import math
import signal
from pathlib import Path

import pytest
from fakes.stepping import LIMITS, World, epoch, failure, ready, result, step

from training.run.event import parse_line
from training.run.job import JobState
from training.run.outside import Outside


def test_a_job_succeeds_when_all_ranks_end_well(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.start()
    world.gang.tell(epoch(0, 2, 44, loss=0.41, accuracy=0.88))
    world.gang.tell(result(1, rank="one"))
    world.gang.tell(result(0, rank="zero"))
    world.gang.end(0)
    world.gang.end(1)
    done = world.run_to_end()
    assert done.state is JobState.SUCCEEDED
    assert done.exit_codes == {0: 0, 1: 0}
    assert done.values == {"rank": "zero"}
    assert world.gang.closed
    assert "[rank 0] epoch 2/5  step 44  loss 0.41  accuracy 0.88  1.2 s\n" in world.merged


def test_the_status_tells_how_far_the_job_is(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.tick()
    assert world.status.state is JobState.STARTING
    world.start()
    world.gang.tell(step(0, 7, loss=0.25))
    world.gang.say(1, "half way")
    world.tick()
    assert world.status.step == 0, "written once a second at most"
    world.tick(1.0)
    assert (world.status.step, world.status.metrics) == (7, {"loss": 0.25})
    assert world.status.ranks[1].last_line == "half way"


@pytest.mark.parametrize("exit_code", [1, 3, 7, 99])
def test_any_exit_code_but_zero_fails_the_job(tmp_path: Path, exit_code: int) -> None:
    """K15: 99 as well."""
    world = World(tmp_path)
    world.start()
    world.gang.end(0)
    world.gang.crash(1, exit_code)
    done = world.run_to_end()
    assert done.state is JobState.FAILED
    assert done.exit_codes == {0: 0, 1: exit_code}
    assert world.headline.message == f"exit code {exit_code}"


def test_the_first_failure_is_the_headline_and_the_others_are_ended(tmp_path: Path) -> None:
    """K14: within the grace period, also those that ignore SIGTERM."""
    world = World(tmp_path, ranks=3)
    world.start()
    world.gang.hang(0)
    world.gang.tell(step(1, 3))
    world.gang.say(1, "Traceback (most recent call last):", "err")
    world.gang.say(1, "ValueError: boom", "err")
    world.gang.crash(1, 1)
    seconds = world.tick_until(lambda: world.is_over)
    assert LIMITS.stop_grace_s <= seconds < LIMITS.stop_grace_s + 1
    assert world.gang.ranks[0].signals == [signal.SIGTERM, signal.SIGCONT, signal.SIGKILL]
    headline = world.headline
    assert (headline.rank, headline.host, headline.step) == (1, "127.0.0.1", 3)
    assert headline.message == "ValueError: boom (exit code 1)"
    assert headline.detail.endswith("Traceback (most recent call last):\nValueError: boom")
    assert "[ganger] rank 1 (worker) on 127.0.0.1 failed at step 3: ValueError: boom (exit code 1)" in world.merged


def test_a_rank_that_tells_its_failure_may_end_by_itself(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.start()
    world.gang.tell(failure(1, "ValueError", "boom", at_step=5))
    world.tick()
    assert signal.SIGTERM in world.gang.ranks[0].signals
    assert world.gang.ranks[1].signals == []
    world.tick(0.2)
    world.gang.crash(1, 70)
    done = world.run_to_end()
    assert done.exit_codes == {0: -15, 1: 70}
    assert (world.headline.kind, world.headline.step) == ("WorkerError", 5)
    assert "in train" in world.headline.detail


def test_a_rank_that_told_its_failure_but_hangs_is_ended(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.start()
    world.gang.tell(failure(1, "ValueError", "boom"))
    done = world.run_to_end()
    assert done.exit_codes == {0: -15, 1: -15}
    assert world.headline.exit_code == 70


def test_a_told_failure_fails_the_job_even_with_exit_code_zero(tmp_path: Path) -> None:
    """K15: as behind a pipe to `tee`."""
    world = World(tmp_path, ranks=1)
    world.start()
    world.gang.tell(failure(0, "ValueError", "boom"))
    world.gang.end(0)
    assert world.run_to_end().state is JobState.FAILED


def test_the_peer_that_was_lost_is_blamed_not_the_one_that_lost_it(tmp_path: Path) -> None:
    """K14: the peers' 'connection reset' never heads the error."""
    world = World(tmp_path)
    world.start()
    world.gang.tell(failure(0, "tensorflow.errors.UnavailableError", "Connection reset by peer"))
    world.tick()
    assert not world.gang.ranks[1].signals, "the culprit has a moment to show itself"
    world.tick(0.5)
    world.gang.crash(1, 7)
    world.run_to_end()
    assert (world.headline.rank, world.headline.message) == (1, "exit code 7")


def test_a_lost_peer_is_the_headline_where_nobody_else_fails(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.start()
    world.gang.tell(failure(0, "tensorflow.errors.UnavailableError", "Connection reset by peer"))
    world.run_to_end()
    assert (world.headline.rank, world.headline.kind) == (0, "InfrastructureError")


def test_a_stopped_peer_is_blamed_not_the_one_that_gave_it_up(tmp_path: Path) -> None:
    """K14 (d): TensorFlow gives a silent peer up after 10 s, long before `stall_timeout_s` is over."""
    world = World(tmp_path)
    world.start()
    world.gang.halt(1)
    world.tick(11)
    world.gang.tell(failure(0, "tensorflow.errors.UnavailableError", "Task /job:worker/task:1 heartbeat timeout"))
    world.gang.crash(0, 70)
    world.tick()
    assert not world.gang.ranks[1].signals, "another one may be seen failing"
    world.run_to_end()
    headline = world.headline
    assert (headline.rank, headline.kind) == (1, "InfrastructureError")
    assert "the kernel holds it stopped (SIGSTOP)" in headline.message
    assert world.gang.ranks[1].dumps == 1


def test_an_exception_is_told_by_the_line_that_says_what_happened(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.start()
    text = "Graph execution error:\n\nDetected at node PyFunc defined at (most recent call last):\n  File x\nOOM: 3 GB"
    world.gang.tell(failure(0, "tensorflow.errors.ResourceExhaustedError", text))
    world.run_to_end()
    assert world.headline.message == "tensorflow.errors.ResourceExhaustedError: OOM: 3 GB … (exit code 70)"


def test_a_signal_in_the_same_tick_outranks_a_lost_peer(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.start()
    world.gang.tell(failure(0, "tensorflow.errors.UnavailableError", "Socket closed"))
    world.gang.crash(1, -signal.SIGKILL)
    world.run_to_end()
    assert (world.headline.rank, world.headline.message) == (1, "killed by SIGKILL")


@pytest.mark.parametrize("peer_notices", [False, True])
def test_a_rank_that_leaves_in_mid_training_with_exit_code_zero_is_blamed(tmp_path: Path, peer_notices: bool) -> None:
    """K15: as by `os._exit(0)` in user code; not the peer that waits for it, nor the one that notices first."""
    world = World(tmp_path)
    world.start()
    world.gang.tell(step(1, 3))
    if peer_notices:
        world.gang.tell(failure(0, "tensorflow.errors.UnavailableError", "Socket closed"))
    world.tick(0.2)
    world.gang.say(1, "connection closed")
    world.gang.crash(1, 0)
    assert world.tick_until(lambda: world.is_over) < 2
    headline = world.headline
    assert (headline.rank, headline.kind, headline.step) == (1, "WorkerError", 3)
    assert headline.message == "ended with exit code 0 before its task was done"
    assert "done: rank 1" not in world.merged


def test_a_single_rank_that_leaves_before_its_task_is_done_fails_the_job(tmp_path: Path) -> None:
    """K15."""
    world = World(tmp_path, ranks=1, limits=LIMITS.model_copy(update={"restarts": 5}))
    world.tick()
    world.gang.crash(0, 0)
    world.run_to_end()
    assert (world.headline.kind, len(world.launcher.gangs)) == ("WorkerError", 1)


def test_a_rank_that_leaves_before_it_joined_is_told_apart(tmp_path: Path) -> None:
    """K02."""
    world = World(tmp_path)
    world.tick()
    world.gang.tell(ready(0))
    world.gang.crash(1, 0)
    world.run_to_end()
    assert "before it had joined. Ready: rank 0 (worker)." in world.headline.message


@pytest.mark.parametrize("loss", [math.nan, math.inf])
def test_a_loss_that_is_not_finite_fails_the_job(tmp_path: Path, loss: float) -> None:
    """K30: also where the rank itself goes on."""
    world = World(tmp_path)
    world.start()
    world.gang.tell(step(1, 5, loss=loss))
    world.run_to_end()
    headline = world.headline
    assert (headline.kind, headline.rank, headline.step) == ("DivergedError", 1, 5)
    assert f"loss became {loss} at step 5 of epoch 1" in headline.message


def test_missing_outputs_fail_the_job(tmp_path: Path) -> None:
    """K15: exit code 0 without a model is no success."""
    world = World(tmp_path, plan_fields={"outputs": (str(tmp_path / "model"),)})
    world.start()
    world.gang.end(0)
    world.gang.end(1)
    world.run_to_end()
    assert (world.headline.kind, world.headline.rank) == ("WorkerError", None)
    assert f"{tmp_path / 'model'} is missing" in world.headline.message


def test_cancelling_ends_the_gang(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.start()
    world.outside = Outside(cancel="ganger stop")
    world.tick()
    assert world.status.state is JobState.STOPPING
    assert world.run_to_end().state is JobState.CANCELLED
    assert world.headline.message == "cancelled: ganger stop"


def test_what_ranks_left_behind_is_told(tmp_path: Path) -> None:
    """K16."""
    world = World(tmp_path, ranks=1)
    world.start()
    world.leftovers = [4242]
    world.gang.end(0)
    assert world.run_to_end().notes == ("ended what the ranks left behind: process 4242",)


def test_events_are_kept_whole_and_between_output(tmp_path: Path) -> None:
    world = World(tmp_path, ranks=1)
    world.start()
    line = step(0, 1)
    world.gang.write(0, b"\xff no line feed")
    world.gang.tell(line)
    world.gang.write(0, b"cut off in the mid")
    world.gang.end(0)
    world.run_to_end()
    assert world.folder.rank_log(0).read_bytes() == b"ready  1 thread\n\xff no line feed\ncut off in the mid\n"
    assert "[rank 0] \N{REPLACEMENT CHARACTER} no line feed\n[rank 0] cut off in the mid\n" in world.merged
    kept = world.folder.events.read_text().splitlines()[-2]  # the last one tells that it is done
    assert parse_line(f"\x1e{kept}")[1] == line


def test_secrets_reach_no_file(tmp_path: Path) -> None:
    """K18: what a rank prints of its environment is masked, in text and in events."""
    environ = {"MY_SECRET": "s3cr3t-XYZ", "URL": "http://ada:pa55word@host/", "HOME": "/root"}
    world = World(tmp_path, ranks=1, environ=environ)
    world.start()
    world.gang.say(0, "connecting with s3cr3t-XYZ to http://ada:pa55word@host/")
    world.gang.tell(failure(0, "ValueError", "no access with s3cr3t-XYZ"))
    world.gang.crash(0, 70)
    done = world.run_to_end()
    written = done.model_dump_json() + "".join(
        path.read_text() for path in world.folder.path.rglob("*") if path.is_file()
    )
    assert "s3cr3t-XYZ" not in written
    assert "pa55word" not in written
    assert "connecting with *** to http://ada:***@host/" in written


def test_a_full_disk_is_told_and_ends_nothing(tmp_path: Path) -> None:
    """K37."""
    world = World(tmp_path, ranks=1)
    world.folder.merged_log.symlink_to("/dev/full")
    world.start()
    world.gang.end(0)
    done = world.run_to_end()
    assert done.state is JobState.SUCCEEDED
    assert done.notes == ("merged.log is incomplete: No space left on device",)
