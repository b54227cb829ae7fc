"""The deadlines of a job stepped by hand: to start, to go on, to end with the others, to be followed."""

from __future__ import annotations

from pathlib import Path

import pytest
from fakes.stepping import LIMITS, World, ready, step

from training.plan.job import ProcessPlan
from training.run.event import Heartbeat
from training.run.job import JobState
from training.run.outside import Outside


def test_the_start_deadline_names_who_joined_and_who_did_not(tmp_path: Path) -> None:
    """K02."""
    world = World(tmp_path)
    world.tick()
    world.gang.tell(ready(0))
    world.gang.say(1, "waiting for a lock")
    seconds = world.tick_until(lambda: world.is_over)
    assert LIMITS.start_timeout_s <= seconds < LIMITS.start_timeout_s + 2
    headline = world.headline
    assert headline.kind == "LaunchError"
    assert "Ready: rank 0 (worker). Not ready: rank 1 (worker) on 127.0.0.1." in headline.message
    assert headline.detail == "rank 1 (worker): last line: waiting for a lock"
    assert "to be ready within 20 s" in world.merged


def test_a_rank_that_leaves_before_it_joined_ends_the_start_at_once(tmp_path: Path) -> None:
    """K02."""
    world = World(tmp_path)
    world.tick()
    world.gang.tell(ready(0))
    world.gang.say(1, "nothing to do")
    world.gang.end(1)
    assert world.tick_until(lambda: world.is_over) < 2
    assert "before it had joined" in world.headline.message
    assert world.headline.detail == "nothing to do"


def test_a_single_process_need_not_join_anybody(tmp_path: Path) -> None:
    world = World(tmp_path, ranks=1)
    world.tick()
    world.gang.end(0)
    assert world.run_to_end().state is JobState.SUCCEEDED


@pytest.mark.parametrize(("ready_on", "says"), [("output", True), ("start", False)])
def test_a_script_joins_by_its_output_or_its_start(tmp_path: Path, ready_on: str, says: bool) -> None:
    processes = tuple(ProcessPlan(rank=n, argv=("toy",), ready_on=ready_on) for n in range(2))  # type: ignore[arg-type]
    world = World(tmp_path, processes=processes)
    world.tick()
    for rank in (0, 1):
        if says:
            world.gang.write(rank, b"half a li")
        world.gang.crash(rank, 0)  # it knows nothing of events
    assert world.run_to_end().state is JobState.SUCCEEDED


def test_a_stopped_rank_is_named_with_stacks_of_all(tmp_path: Path) -> None:
    """K14 (d): SIGSTOP is caught by the stall timeout."""
    world = World(tmp_path)
    world.start()
    world.gang.halt(1)
    world.gang.hang(1)
    seconds = world.tick_until(lambda: 1 in world.gang.ranks and world.gang.ranks[1].dumps > 0)
    assert LIMITS.stall_timeout_s <= seconds < LIMITS.stall_timeout_s + 1
    world.run_to_end()
    headline = world.headline
    assert (headline.rank, headline.kind) == (1, "InfrastructureError")
    assert "gave no sign of life for 30.1 s; the kernel holds it stopped (SIGSTOP)" in headline.message
    assert world.gang.ranks[0].dumps == 1


def test_a_rank_that_says_anything_is_not_stalled(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.start()
    for _ in range(8):
        world.tick(10.0)
        world.gang.tell(Heartbeat(rank=0, doing="validating"))
        world.gang.write(1, b".")
    assert world.status.state is JobState.RUNNING
    assert world.merged.count("validating") == 1, "said again, told once"


def test_the_rank_that_is_behind_is_blamed_for_a_stall(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.start()
    for rank, number in ((0, 5), (1, 4)):
        world.gang.tell(step(rank, number))
    world.run_to_end()
    assert (world.headline.rank, world.headline.step) == (1, 4)


def test_late_ranks_have_a_grace_period_that_the_log_shows(tmp_path: Path) -> None:
    """K20."""
    world = World(tmp_path)
    world.start()
    world.gang.end(0)
    world.tick(10.0)
    world.gang.end(1)
    assert world.run_to_end().state is JobState.SUCCEEDED
    assert "done: rank 0 (worker); rank 1 (worker) may go on for 15 s" in world.merged


def test_a_rank_that_is_too_late_fails_the_job(tmp_path: Path) -> None:
    """K20."""
    world = World(tmp_path)
    world.start()
    world.gang.end(0)
    world.run_to_end()
    assert (world.headline.rank, world.headline.kind) == (1, "InfrastructureError")
    assert "still ran 15 s after the first rank had ended" in world.headline.message


def test_the_total_timeout_holds_for_ranks_that_ignore_sigterm(tmp_path: Path) -> None:
    """K17: all members are gone within limit and grace, and it is not tried again."""
    world = World(tmp_path, limits=LIMITS.model_copy(update={"timeout_s": 25.0, "restarts": 5}))
    world.start()
    world.gang.hang(0)
    world.gang.hang(1)
    seconds = world.tick_until(lambda: world.is_over)
    assert 35 <= seconds < 36
    assert world.result.state is JobState.FAILED
    assert "the job must end within 25 s. Still running: rank 0 (worker), rank 1 (worker)." in world.headline.message
    assert len(world.launcher.gangs) == 1


def test_a_job_that_nobody_follows_ends_itself(tmp_path: Path) -> None:
    world = World(tmp_path, limits=LIMITS.model_copy(update={"lease_s": 10.0, "stall_timeout_s": 1_000.0}))
    world.start()
    for stamp in range(5):
        world.outside = Outside(lease=float(stamp))
        world.tick(4.0)
    assert world.status.state is JobState.RUNNING
    seconds = world.tick_until(lambda: world.is_over)
    assert 10 <= seconds < 11
    assert world.result.state is JobState.CANCELLED
    assert "nobody has followed the job for 10 s" in world.headline.message
