"""A job in the queue of its machine, stepped by hand: two that each need all slots run one after the other (K13)."""

from __future__ import annotations

from pathlib import Path

import pytest
from fakes.stepping import LIMITS, World

from training.run.job import JobState
from training.run.outside import Outside
from training.run.redact import Redactor
from training.run.slot_table import SlotTable
from training.run.supervision import Mode
from training.run.tracker_api import NullTracker
from training.run.tracker_thread import TrackerThread


class OpenTracker(NullTracker):
    """Tells whether it was opened and closed."""

    opened = closed = False

    def open(self) -> str | None:
        self.opened = True
        return "abc123"

    def close(self, *ending: object) -> None:
        self.closed = True


def _rows(home: Path) -> dict[str, tuple[int, ...]]:
    return {row.claim.job_id: row.claim.slots for row in SlotTable.here(home).read()}


def _holder(home: Path, **fields: object) -> World:
    world = World(home, run_id="first", slots=2, **fields)  # type: ignore[arg-type]
    world.start()
    return world


def _waiter(home: Path, run_id: str = "second", **fields: object) -> World:
    world = World(home, run_id=run_id, slots=2, **fields)  # type: ignore[arg-type]
    world.tick()
    assert world.supervision.mode is Mode.QUEUED
    return world


def _end(world: World) -> None:
    for rank in world.gang.ranks:
        world.gang.end(rank)
    world.run_to_end()


def test_the_second_waits_and_starts_when_the_first_has_ended(tmp_path: Path) -> None:
    first, second = _holder(tmp_path), _waiter(tmp_path)
    assert second.status.state is JobState.QUEUED
    second.tick(30)
    assert second.launcher.gangs == []
    _end(first)
    second.tick(1)
    assert second.launcher.gangs != []
    _end(second)
    assert second.result.state is JobState.SUCCEEDED
    assert second.result.started_at == 131.0, "from when it had its slots"
    assert _rows(tmp_path) == {}


def test_a_job_that_needs_no_slots_does_not_look_for_any(tmp_path: Path) -> None:
    World(tmp_path).start()
    assert not (tmp_path / "slots").exists()


def test_the_log_says_who_holds_what_at_the_start_at_each_change_and_each_minute(tmp_path: Path) -> None:
    first = _holder(tmp_path)
    second = _waiter(tmp_path, "second")
    third = _waiter(tmp_path, "third")

    def said() -> list[str]:
        return [line.removeprefix("[ganger] ") for line in third.merged.splitlines()]

    host = first.seeker.table.host
    held = "held by {}/train (2 slots, since "
    assert len(said()) == 1
    assert said()[0].startswith(f"waiting for 2 of 2 slots of {host}: {held.format('first')}")
    assert said()[0].endswith("); 1 before us")
    for _ in range(100):
        third.tick(0.5)
    assert len(said()) == 1
    for _ in range(40):
        third.tick(0.5)
    assert said()[0] == said()[1]
    _end(first)
    second.tick(1)
    third.tick(1)
    assert held.format("second") in said()[2]
    assert "before us" not in said()[2]
    _end(second)
    third.tick(1)
    assert said()[3] == f"took 2 of 2 slots of {host} after 72.0 s: slots 0, 1"
    assert len(said()) == 6


def test_the_time_limit_counts_from_when_the_slots_were_got(tmp_path: Path) -> None:
    limits = LIMITS.model_copy(update={"timeout_s": 10})
    first, second = _holder(tmp_path), _waiter(tmp_path, limits=limits)
    for _ in range(100):
        second.tick(1)
    _end(first)
    second.tick(1)
    second.start()
    second.tick(9)
    assert second.supervision.mode is Mode.RUNNING
    second.tick(1)
    assert second.run_to_end().failure.message.startswith("the job must end within 10 s")  # type: ignore[union-attr]


def test_cancelling_in_the_queue_leaves_nothing(tmp_path: Path) -> None:
    tracker = OpenTracker()
    first = _holder(tmp_path)
    second = _waiter(tmp_path, tracker=TrackerThread(lambda: tracker, Redactor({})))
    second.outside = Outside(cancel="ganger stop")
    second.tick(0.1)
    assert second.result.state is JobState.CANCELLED
    assert second.launcher.gangs == []
    assert (tracker.opened, tracker.closed) == (False, False), "no MLflow run for a training that never began"
    assert not second.result.tracking_closed, "that of an earlier try may be open: the teardown looks"
    assert _rows(tmp_path) == {"first/train": (0, 1)}
    _end(first)


def test_the_tracking_is_opened_when_the_slots_are_there(tmp_path: Path) -> None:
    tracker = OpenTracker()
    first = _holder(tmp_path)
    thread = TrackerThread(lambda: tracker, Redactor({}))
    second = _waiter(tmp_path, tracker=thread)
    assert not tracker.opened
    _end(first)
    second.tick(1)
    assert thread.opened.wait(10)
    second.start()
    assert second.gang.order.env == {"MLFLOW_RUN_ID": "abc123"}
    for rank in second.gang.ranks:
        second.gang.end(rank)
    second.tick_until(lambda: second.gang.closed)
    assert _rows(tmp_path) == {}, "free as soon as the ranks are gone, however long the tracking server takes"
    assert thread.closed.wait(10)
    assert second.run_to_end().tracking_closed


def test_nobody_waits_for_ever_for_a_job_that_nobody_follows(tmp_path: Path) -> None:
    _holder(tmp_path)
    second = _waiter(tmp_path, limits=LIMITS.model_copy(update={"lease_s": 20}))
    second.tick_until(lambda: second.is_over)
    assert second.result.state is JobState.CANCELLED
    assert "nobody has followed the job for 20 s" in second.merged
    assert list(_rows(tmp_path)) == ["first/train"]


def test_a_limit_of_waiting_ends_in_who_holds_what(tmp_path: Path) -> None:
    _holder(tmp_path)
    second = _waiter(tmp_path, queue_timeout_s=30.0, limits=LIMITS.model_copy(update={"restarts": 3}))
    waited = second.tick_until(lambda: second.is_over)
    failure = second.result.failure
    assert failure is not None
    assert 30 <= waited < 31
    assert (second.result.state, failure.kind) == (JobState.FAILED, "LaunchError"), "a retry makes sense"
    assert failure.message.startswith(
        f"a free slot for each rank must be found within 30 s. Received: 2 of 2 slots of {second.seeker.table.host}: "
        "held by first/train (2 slots, since "
    )
    assert second.launcher.gangs == []
    assert list(_rows(tmp_path)) == ["first/train"]


def test_more_than_the_machine_has_is_refused_at_once(tmp_path: Path) -> None:
    _holder(tmp_path)
    large = World(tmp_path, run_id="large", slots=3, limits=LIMITS.model_copy(update={"restarts": 3}))
    large.tick()
    failure = large.result.failure
    assert failure is not None
    assert failure.kind == "PreflightError"
    assert failure.message == (
        f"the ranks of a gang must be at most the slots of {large.seeker.table.host}, 2. Received: 3. "
        "Use fewer workers, or set GANGER_SLOTS=3 to let ranks share cores."
    )
    assert list(_rows(tmp_path)) == ["first/train"]


def test_a_restart_keeps_the_slots(tmp_path: Path) -> None:
    first = _holder(tmp_path, limits=LIMITS.model_copy(update={"restarts": 1}))
    second = _waiter(tmp_path)
    first.gang.crash(1, -9)
    first.tick_until(lambda: first.supervision.mode is Mode.PAUSING)
    second.tick(5)
    assert second.supervision.mode is Mode.QUEUED
    first.tick_until(lambda: len(first.launcher.gangs) == 2)
    _end(first)
    second.tick(1)
    assert second.launcher.gangs != []
    assert _rows(tmp_path) == {"second/train": (0, 1)}


def test_the_slots_of_a_gang_that_could_not_go_on_are_free(tmp_path: Path) -> None:
    first = _holder(tmp_path)
    first.supervision.abandon()
    assert _rows(tmp_path) == {}


@pytest.mark.parametrize("restarts", [0, 3])
def test_a_table_that_cannot_be_written_is_a_failure_that_says_so(tmp_path: Path, restarts: int) -> None:
    (tmp_path / "slots").write_text("a file where the folder should be")
    world = World(tmp_path, slots=2, limits=LIMITS.model_copy(update={"restarts": restarts}))
    world.tick()
    failure = world.result.failure
    assert failure is not None
    assert failure.kind == "InfrastructureError"
    assert failure.message.startswith("the slots of this machine could not be taken: ")
    assert str(tmp_path / "slots") in failure.message
    assert "its slots count as free when this process has ended" in world.merged
