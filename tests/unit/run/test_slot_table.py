"""The file in which supervisors of one machine write who holds its slots and who waits (K13, K50)."""

from __future__ import annotations

import fcntl
import os
import socket
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from training.policy.slots import SlotAction, SlotDecision
from training.run.folder import RunFolder
from training.run.job import SupervisorRef
from training.run.lock import JobLock, this_supervisor
from training.run.slot_table import SlotTable
from training.run.slots import SlotSeeker


@dataclass
class Seeker:
    """A job that seeks slots, and what it said. Its supervisor is this process, unless it is told another."""

    home: Path
    run_id: str
    wanted: int = 2
    total: int = 2
    supervisor: SupervisorRef = field(default_factory=this_supervisor)
    said: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.folder = RunFolder.of(self.run_id, self.home).job("train")
        self.folder.path.mkdir(parents=True, exist_ok=True)
        self.seeker = SlotSeeker(
            self.folder,
            self.supervisor,
            wanted=self.wanted,
            total=self.total,
            wall_clock=lambda: 1_000.0,
            say=self.said.append,
        )
        self.table = self.seeker.table

    def look(self) -> SlotDecision:
        decision = self.seeker.look()
        assert decision is not None
        return decision

    def holds(self) -> tuple[int, ...]:
        decision = self.look()
        return decision.slots if decision.action is SlotAction.TAKE else ()


def rows(home: Path) -> dict[str, tuple[int, ...]]:
    return {row.claim.job_id: row.claim.slots for row in SlotTable.here(home).read()}


@pytest.fixture
def ended() -> SupervisorRef:
    """A supervisor that is dead."""
    process = subprocess.Popen([sys.executable, "-I", "-S", "-c", "input()"], stdin=subprocess.PIPE)
    ref = SupervisorRef(
        pid=process.pid, started_at=psutil.Process(process.pid).create_time(), host=socket.gethostname()
    )
    process.communicate()
    return ref


def test_slots_go_from_one_to_the_other(tmp_path: Path) -> None:
    one, two = Seeker(tmp_path, "one"), Seeker(tmp_path, "two")
    assert one.holds() == (0, 1)
    assert two.holds() == ()
    assert rows(tmp_path) == {"one/train": (0, 1), "two/train": ()}
    one.seeker.release()
    one.seeker.release()
    assert two.holds() == (0, 1)
    two.seeker.release()
    assert rows(tmp_path) == {}
    assert not two.folder.slots.exists()


def test_a_dead_holder_is_dropped_aloud_and_once(tmp_path: Path, ended: SupervisorRef) -> None:
    assert Seeker(tmp_path, "dead", supervisor=ended).holds() == (0, 1)
    waiting, large = Seeker(tmp_path, "waiting", wanted=1), Seeker(tmp_path, "large")
    assert waiting.holds() == (0,)
    assert waiting.said == [f"dropped the claim of dead/train: its supervisor (pid {ended.pid}) is dead"]
    assert large.holds() == large.holds() == ()
    assert large.said == []


def test_a_dead_waiter_holds_nobody_up(tmp_path: Path, ended: SupervisorRef) -> None:
    holder = Seeker(tmp_path, "holder")
    holder.holds()
    assert Seeker(tmp_path, "dead", supervisor=ended).holds() == ()
    waiting = Seeker(tmp_path, "waiting")
    waiting.look()
    holder.seeker.release()
    assert waiting.holds() == (0, 1)


def test_another_process_with_the_pid_of_a_dead_holder_is_not_taken_for_it(tmp_path: Path) -> None:
    me = this_supervisor()
    Seeker(tmp_path, "dead", supervisor=me.model_copy(update={"started_at": me.started_at - 3_600})).look()
    assert Seeker(tmp_path, "waiting").holds() == (0, 1)


def test_a_holder_keeps_its_slots_though_the_clock_was_set(tmp_path: Path) -> None:
    """Start times are told by a clock that may be set; the lock of its job says that it lives."""
    me = this_supervisor()
    holder = Seeker(tmp_path, "holder", supervisor=me.model_copy(update={"started_at": me.started_at + 5}))
    lock = JobLock.acquire(holder.folder)
    assert lock is not None
    with lock:
        assert holder.holds() == (0, 1)
        waiting = Seeker(tmp_path, "waiting")
        assert waiting.holds() == ()
    assert waiting.holds() == (0, 1)


def test_the_next_try_of_a_job_takes_the_place_of_the_one_that_died(tmp_path: Path, ended: SupervisorRef) -> None:
    first = Seeker(tmp_path, "job", supervisor=ended)
    first.look()
    lock = JobLock.acquire(first.folder)  # that of the next try's supervisor
    assert lock is not None
    with lock:
        assert Seeker(tmp_path, "job").holds() == (0, 1)
        assert len(SlotTable.here(tmp_path).read()) == 1


@pytest.mark.parametrize("damage", ["", "{", '{"rows": [{"job": "of another version"}]}', "\x00\x00", None])
def test_a_lost_or_damaged_table_is_made_again_with_those_who_hold(tmp_path: Path, damage: str | None) -> None:
    holder, waiting = Seeker(tmp_path, "holder", total=3), Seeker(tmp_path, "waiting", total=3)
    holder.look()
    waiting.look()
    if damage is None:
        holder.table.path.unlink()
    else:
        holder.table.path.write_text(damage)
    assert waiting.holds() == ()
    assert rows(tmp_path) == {"holder/train": (0, 1), "waiting/train": ()}
    assert [line for line in waiting.said if "is damaged" in line] == waiting.said[: damage is not None]
    assert waiting.look().action is SlotAction.WAIT
    assert len(waiting.said) == (damage is not None), "said once"
    holder.seeker.release()
    assert waiting.holds() == (0, 1)


def test_those_who_released_or_died_do_not_come_back_with_a_new_table(tmp_path: Path, ended: SupervisorRef) -> None:
    done = Seeker(tmp_path, "done", total=4)
    done.look()
    done.seeker.release()
    Seeker(tmp_path, "dead", total=4, supervisor=ended).look()
    done.table.path.write_text("{")
    assert Seeker(tmp_path, "next", wanted=4, total=4).holds() == (0, 1, 2, 3)


def test_processes_that_were_told_different_totals_share_no_slot(tmp_path: Path) -> None:
    large, small = Seeker(tmp_path, "large", wanted=1, total=3), Seeker(tmp_path, "small", wanted=2, total=2)
    assert large.holds() == (0,)
    assert small.holds() == ()
    assert Seeker(tmp_path, "behind", wanted=1, total=9).holds() == ()
    small.seeker.release()
    assert Seeker(tmp_path, "other", wanted=2, total=9).look().ahead[0].job_id == "behind/train"


def test_who_is_refused_leaves_the_queue(tmp_path: Path) -> None:
    assert Seeker(tmp_path, "large", wanted=3).look().action is SlotAction.REFUSE
    assert rows(tmp_path) == {}


def test_nobody_waits_for_the_table_itself(tmp_path: Path) -> None:
    one = Seeker(tmp_path, "one")
    one.look()
    with one.table.path.with_suffix(".lock").open() as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        assert one.seeker.look() is None
    assert one.seeker.look() is not None


def test_each_host_has_a_table_of_its_own(tmp_path: Path) -> None:
    elsewhere = this_supervisor().model_copy(update={"host": "node/7"})
    assert Seeker(tmp_path, "elsewhere", supervisor=elsewhere).holds() == (0, 1)
    assert Seeker(tmp_path, "here").holds() == (0, 1)
    assert sorted(path.name for path in (tmp_path / "slots").glob("*.json")) == sorted(
        ["node_7.json", f"{socket.gethostname()}.json"]
    )


def test_many_at_once_never_hold_more_than_there_are(tmp_path: Path) -> None:
    """Real processes that take, look whom they meet, and give back, as fast as they can."""
    program = (
        "import sys, os, time; from pathlib import Path; sys.path.insert(0, sys.argv[3])\n"
        "from training.run.folder import RunFolder; from training.run.slots import SlotSeeker\n"
        "from training.run.lock import this_supervisor\n"
        "home, name = Path(sys.argv[1]), sys.argv[2]\n"
        "for turn in range(15):\n"
        "    folder = RunFolder.of(f'{name}-{turn}', home).job('train'); folder.path.mkdir(parents=True)\n"
        "    seeker = SlotSeeker(folder, this_supervisor(), wanted=1 + turn % 3, total=3)\n"
        "    while not ((decision := seeker.look()) and decision.slots): time.sleep(0.001)\n"
        "    for slot in decision.slots: os.close(os.open(home / f'slot-{slot}', os.O_CREAT | os.O_EXCL))\n"
        "    time.sleep(0.002)\n"
        "    for slot in decision.slots: os.unlink(home / f'slot-{slot}')\n"
        "    seeker.release()\n"
    )
    root = str(Path(__file__).parents[3])
    commands = [[sys.executable, "-c", program, str(tmp_path), f"job{number}", root] for number in range(4)]
    processes = [subprocess.Popen(command, env={**os.environ, "PYTHONPATH": root}) for command in commands]
    assert [process.wait(60) for process in processes] == [0, 0, 0, 0], "O_EXCL: a slot was given twice"
    assert rows(tmp_path) == {}
