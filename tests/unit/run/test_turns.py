"""A job whose processes begin one after the other, each when its turn is called."""

from __future__ import annotations

from pathlib import Path

import pytest
from fakes.stepping import LIMITS, World, ready

from training.plan.job import ProcessPlan
from training.run.folder import JobFolder
from training.run.job import JobState
from training.run.outside import Outside, read_outside
from training.run.turn import call_all, call_turn, read_turn, write_turn


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A chief, which comes last, and two stages; the first one is called."""
    processes = (
        ProcessPlan(rank=0, role="chief", argv=("toy",), turn=3),
        ProcessPlan(rank=1, role="stage 0", argv=("toy",), service=True, turn=1),
        ProcessPlan(rank=2, role="stage 1", argv=("toy",), service=True, turn=2),
    )
    world = World(tmp_path, processes=processes, outside=Outside(turn=1))
    world.tick()
    return world


def test_each_has_the_whole_time_from_its_call_on(world: World) -> None:
    """K02: so long a pause between two tasks harms nobody, and nobody is blamed who was not called."""
    nearly = LIMITS.start_timeout_s - 1
    for turn, rank in ((2, 1), (3, 2)):
        world.tick(nearly)
        world.gang.tell(ready(rank))
        world.tick(10 * nearly)
        assert world.status.state is JobState.STARTING
        world.outside = Outside(turn=turn)
        world.tick()
    world.tick(nearly)
    world.gang.tell(ready(0))
    world.tick()
    assert world.status.state is JobState.RUNNING


def test_a_stage_that_was_called_and_does_not_come_is_named(world: World) -> None:
    """K02."""
    world.gang.tell(ready(1))
    world.outside = Outside(turn=2)
    assert world.tick_until(lambda: world.is_over) >= LIMITS.start_timeout_s
    assert world.headline.name == "rank 2 (stage 1)"
    assert "Ready: rank 1 (stage 0). Not ready: rank 2 (stage 1) on" in world.headline.message


def test_a_stage_that_dies_while_others_wait_is_named(world: World) -> None:
    """K14."""
    world.gang.tell(ready(1))
    world.gang.crash(1, -9)
    world.run_to_end()
    assert (world.headline.name, world.headline.message) == ("rank 1 (stage 0)", "killed by SIGKILL")


def test_nobody_waits_where_nobody_calls(tmp_path: Path) -> None:
    folder = JobFolder(tmp_path / "run" / "jobs" / "train")
    assert read_outside(folder).turn is None
    call_turn(folder, 2)
    assert read_turn(folder) is None
    write_turn(folder, 1)
    call_turn(folder, 2)
    assert read_outside(folder).turn == 2
    call_turn(folder, 1)
    assert read_turn(folder) == 2
    call_all(folder)
    call_all(folder)
    assert read_turn(folder) is None
