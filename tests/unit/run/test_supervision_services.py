"""Services of a job stepped by hand: they come up, serve, and are ended."""

from __future__ import annotations

import signal
from pathlib import Path

from fakes.stepping import LIMITS, World, ready, step

from training.plan.job import ProcessPlan
from training.run.job import JobState


def test_services_are_ended_when_the_others_are_done(tmp_path: Path) -> None:
    """K20: the end of a chief is the end, however its workers and servers stand."""
    processes = (
        ProcessPlan(rank=0, argv=("toy",)),
        ProcessPlan(rank=1, role="server", argv=("toy",), service=True),
    )
    world = World(tmp_path, processes=processes)
    world.tick()
    world.gang.tell(ready(0))
    world.gang.end(0)
    done = world.run_to_end()
    assert done.state is JobState.SUCCEEDED
    assert done.exit_codes == {0: 0, 1: -15}


def test_a_service_that_dies_fails_the_job(tmp_path: Path) -> None:
    """K14: the same for a parameter server."""
    processes = (
        ProcessPlan(rank=0, argv=("toy",)),
        ProcessPlan(rank=1, role="ps", argv=("toy",), service=True),
    )
    world = World(tmp_path, processes=processes)
    world.tick()
    world.gang.tell(ready(0))
    world.gang.crash(1, -signal.SIGSEGV)
    world.run_to_end()
    assert (world.headline.name, world.headline.message) == ("rank 1 (ps)", "killed by SIGSEGV")


def _serve(tmp_path: Path) -> World:
    """Return a world of a chief and a worker that serves it, not yet started."""
    processes = (
        ProcessPlan(rank=0, role="chief", argv=("toy",)),
        ProcessPlan(rank=1, role="worker", argv=("toy",), service=True),
    )
    return World(tmp_path, processes=processes)


def test_a_service_that_does_not_come_up_is_named(tmp_path: Path) -> None:
    """K02: whoever waits for it could say no more than that it waits."""
    world = _serve(tmp_path)
    world.tick()
    world.gang.tell(ready(0))
    world.run_to_end()
    assert world.headline.name == "rank 1 (worker)"
    assert "Ready: rank 0 (chief). Not ready: rank 1 (worker)" in world.headline.message


def test_a_silent_service_is_no_stall(tmp_path: Path) -> None:
    world = _serve(tmp_path)
    world.start()
    for number in range(1, 5):
        world.gang.tell(step(0, number))
        world.tick(LIMITS.stall_timeout_s - 1)
    assert not world.is_over
    assert world.status.state is JobState.RUNNING


def test_a_stopped_service_is_blamed_for_the_silence_of_others(tmp_path: Path) -> None:
    """K14."""
    world = _serve(tmp_path)
    world.start()
    world.gang.halt(1)
    world.run_to_end()
    assert world.headline.name == "rank 1 (worker)"
    assert "holds it stopped (SIGSTOP)" in world.headline.message
