"""Restarts of a job stepped by hand: which failures, how often, with how many ranks."""

from __future__ import annotations

import math
import signal
from pathlib import Path

import pytest
from fakes.stepping import LIMITS, World, failure, ready, step

from training.errors import InfrastructureError, LaunchError, PreflightError, WorkerError
from training.plan.job import FailurePatternPlan, GangPlan, JobPlan, ProcessPlan
from training.run.follow import raise_for
from training.run.job import JobState
from training.run.outside import Outside


def test_what_may_heal_is_restarted_with_a_higher_attempt(tmp_path: Path) -> None:
    world = World(tmp_path, limits=LIMITS.model_copy(update={"restarts": 1}))
    world.start()
    world.gang.crash(1, -signal.SIGKILL)
    pause = world.tick_until(lambda: len(world.launcher.gangs) == 2)
    assert 0.9 < pause < 1.3
    assert [gang.order.attempt for gang in world.launcher.gangs] == [1, 2]
    for rank in (0, 1):
        world.gang.tell(ready(rank))
        world.gang.say(rank, "again")
        world.gang.end(rank)
    done = world.run_to_end()
    assert (done.state, done.attempts, done.failure) == (JobState.SUCCEEDED, 2, None)
    assert "killed by SIGKILL; signal: restart 1 of 1 (infrastructure)" in done.notes[0]
    assert "---- attempt 2 of toy/train ----\nready  1 thread\nagain\n" in world.folder.rank_log(0).read_text()


def test_the_budget_of_restarts_is_kept(tmp_path: Path) -> None:
    world = World(tmp_path, limits=LIMITS.model_copy(update={"restarts": 2}))
    for attempt in range(3):
        world.tick_until(lambda wanted=attempt: len(world.launcher.gangs) == wanted + 1)  # type: ignore[misc]
        world.gang.crash(0, -signal.SIGKILL)
    assert world.run_to_end().attempts == 3


def test_a_stage_that_dies_with_a_spent_budget_is_the_headline(tmp_path: Path) -> None:
    """K14: not the chief, which only lost it; Airflow's task fails with these words."""
    roles = ("chief", "stage 0", "stage 1")
    processes = tuple(
        ProcessPlan(rank=rank, role=role, argv=("toy",), service=rank > 0) for rank, role in enumerate(roles)
    )
    world = World(tmp_path, processes=processes, limits=LIMITS.model_copy(update={"restarts": 1}))
    for attempt in range(2):
        world.tick_until(lambda wanted=attempt: len(world.launcher.gangs) == wanted + 1)  # type: ignore[misc]
        world.start()
        world.gang.tell(step(0, 10 * (attempt + 1)))
        world.gang.tell(failure(0, "tensorflow.python.framework.errors_impl.UnavailableError", "Socket closed"))
        world.gang.crash(0, 70)
        world.gang.crash(2, -signal.SIGKILL)
    done = world.run_to_end()

    named = "rank 2 (stage 1) on 127.0.0.1 failed: killed by SIGKILL"
    with pytest.raises(InfrastructureError) as caught:
        raise_for(done)
    assert str(caught.value).splitlines()[0] == named
    assert done.notes == (f"attempt 1: {named}; signal: restart 1 of 1 (infrastructure)",)
    assert world.merged.splitlines()[-3:-1] == [
        f"[ganger] {named}",
        "[ganger] signal: all of 1 restarts are used (infrastructure)",
    ]


def test_user_errors_are_not_restarted(tmp_path: Path) -> None:
    """K17: a syntax error with 5 retries fails without one."""
    world = World(tmp_path, limits=LIMITS.model_copy(update={"restarts": 5}))
    world.start()
    world.gang.say(0, "SyntaxError: invalid syntax", "err")
    world.gang.crash(0, 1)
    world.run_to_end()
    assert (world.headline.kind, len(world.launcher.gangs)) == ("SpecError", 1)


def test_failures_of_user_code_have_a_budget_of_their_own(tmp_path: Path) -> None:
    """K17: a killed rank does not use it up, and it does not heal a killed rank."""
    world = World(tmp_path, limits=LIMITS.model_copy(update={"restarts": 1, "user_restarts": 1}))
    for attempt, fail in enumerate((_raise, _kill, _raise)):
        world.tick_until(lambda wanted=attempt: len(world.launcher.gangs) == wanted + 1)  # type: ignore[misc]
        fail(world)
    done = world.run_to_end()
    assert (done.attempts, world.headline.kind) == (3, "WorkerError")
    assert "user code: restart 1 of 1 (user)" in done.notes[0]
    assert "signal: restart 1 of 1 (infrastructure)" in done.notes[1]
    assert "[ganger] user code: all of 1 restarts are used (user)" in world.merged


def test_a_pattern_of_the_spec_decides_what_a_failure_is(tmp_path: Path) -> None:
    """K17: an exception of the user's own, known by its words, is restarted, and Airflow may try again."""
    patterns = (FailurePatternPlan(pattern="boom$", treat_as="temporary"),)
    world = World(tmp_path, limits=LIMITS.model_copy(update={"restarts": 1, "failure_patterns": patterns}))
    for attempt in range(2):
        world.tick_until(lambda wanted=attempt: len(world.launcher.gangs) == wanted + 1)  # type: ignore[misc]
        _raise(world)
    done = world.run_to_end()
    with pytest.raises(InfrastructureError, match="ValueError: boom") as caught:
        raise_for(done)
    assert (done.attempts, caught.value.retryable) == (2, True)
    assert ", treated as temporary by the spec's pattern 'boom$'" in world.headline.message
    assert "temporary: restart 1 of 1 (infrastructure)" in done.notes[0]


def test_a_pattern_can_also_forbid_what_would_be_restarted(tmp_path: Path) -> None:
    patterns = (FailurePatternPlan(pattern="licence", treat_as="user_code"),)
    world = World(tmp_path, limits=LIMITS.model_copy(update={"restarts": 5, "failure_patterns": patterns}))
    world.start()
    world.gang.say(1, "the licence server is gone", "err")
    world.gang.crash(1, -signal.SIGABRT)
    with pytest.raises(WorkerError) as caught:
        raise_for(world.run_to_end())
    assert (world.result.attempts, caught.value.retryable) == (1, False)


def test_no_pattern_trains_on_with_a_loss_that_is_no_number(tmp_path: Path) -> None:
    """K30."""
    patterns = (FailurePatternPlan(pattern=".", treat_as="temporary"),)
    limits = LIMITS.model_copy(update={"restarts": 5, "user_restarts": 5, "failure_patterns": patterns})
    world = World(tmp_path, limits=limits)
    world.start()
    world.gang.say(1, "loss is nan")
    world.gang.tell(step(1, 5, loss=math.nan))
    assert (world.run_to_end().attempts, world.headline.kind) == (1, "DivergedError")


def _raise(world: World) -> None:
    world.tick()
    world.gang.tell(failure(1, "ValueError", "boom"))
    world.gang.crash(1, 70)


def _kill(world: World) -> None:
    world.gang.crash(0, -signal.SIGKILL)


def test_a_taken_port_is_tried_again_with_fresh_ports_a_few_times(tmp_path: Path) -> None:
    """K04: bounded, the whole gang together, and without using up the restarts of the spec."""
    world = World(tmp_path, plan_fields={"ports": ("chief",)})
    for attempt in range(4):
        world.tick_until(lambda wanted=attempt: len(world.launcher.gangs) == wanted + 1)  # type: ignore[misc]
        world.gang.say(1, "OSError: [Errno 98] Address already in use", "err")
        world.gang.crash(1, 1)
    done = world.run_to_end()
    assert (world.headline.kind, done.attempts) == ("LaunchError", 4)
    assert len({gang.ports["chief"] for gang in world.launcher.gangs}) == 4
    assert "all of 3 restarts are used (ports)" in world.merged


def test_no_restart_after_somebody_asked_for_the_end(tmp_path: Path) -> None:
    world = World(tmp_path, limits=LIMITS.model_copy(update={"restarts": 5}))
    world.start()
    world.gang.hang(0)
    world.gang.crash(1, -signal.SIGKILL)
    world.tick()
    world.outside = Outside(cancel="enough")
    world.run_to_end()
    assert len(world.launcher.gangs) == 1


def test_cancelling_in_the_pause_before_a_restart(tmp_path: Path) -> None:
    world = World(tmp_path, limits=LIMITS.model_copy(update={"restarts": 5}))
    world.start()
    world.gang.crash(1, -signal.SIGKILL)
    world.tick_until(lambda: world.gang.closed)
    world.outside = Outside(cancel="enough")
    assert world.run_to_end().state is JobState.CANCELLED
    assert len(world.launcher.gangs) == 1


def test_a_program_that_is_not_there_fails_at_once(tmp_path: Path) -> None:
    """K07."""
    world = World(tmp_path, limits=LIMITS.model_copy(update={"restarts": 5}))
    world.launcher.refusals = [PreflightError("the program must exist. Received: /no/python.")]
    world.run_to_end()
    assert (world.headline.kind, world.result.exit_codes) == ("PreflightError", {})


def test_a_launch_that_may_work_later_is_tried_again(tmp_path: Path) -> None:
    world = World(tmp_path, limits=LIMITS.model_copy(update={"restarts": 1}))
    world.launcher.refusals = [LaunchError("no process left")]
    world.tick_until(lambda: bool(world.launcher.gangs))
    assert world.gang.order.attempt == 2


def _gang(ranks: int) -> GangPlan:
    return GangPlan(processes=tuple(ProcessPlan(rank=n, argv=("toy", str(ranks))) for n in range(ranks)))


def test_a_gang_goes_on_with_fewer_ranks_after_a_loss(tmp_path: Path) -> None:
    limits = LIMITS.model_copy(update={"restarts": 2})
    world = World(tmp_path, ranks=4, limits=limits, plan_fields={"smaller": (_gang(2), _gang(1))})
    world.start()
    world.gang.crash(3, -signal.SIGKILL)
    world.tick_until(lambda: len(world.launcher.gangs) == 2)
    assert sorted(world.gang.ranks) == [0, 1]
    assert JobPlan.model_validate_json(world.folder.job.read_bytes()).world_size == 2, "which the ranks read"
    world.start()
    world.gang.end(0)
    world.gang.end(1)
    done = world.run_to_end()
    assert done.state is JobState.SUCCEEDED
    assert "going on with 2 of 4 ranks" in done.notes


def test_a_gang_does_not_shrink_for_what_no_rank_was_lost_by(tmp_path: Path) -> None:
    limits = LIMITS.model_copy(update={"user_restarts": 1})
    world = World(tmp_path, limits=limits, plan_fields={"smaller": (_gang(1),)})
    world.start()
    world.gang.crash(1, 70)
    world.tick_until(lambda: len(world.launcher.gangs) == 2)
    assert sorted(world.gang.ranks) == [0, 1]
