"""Competing gangs on one machine, with real supervisors: one after the other, never half and half (K13, K50)."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from fakes.jobs import Job, is_gone, wait_until
from fakes.toys import STUBBORN, WORKS, toy

from training import settings
from training.run.folder import RunFolder
from training.run.follow import cancel, stop
from training.run.job import JobResult, JobState
from training.run.slot_table import SlotTable
from training.run.sweep import sweep

#: Joins, works for a moment, and tells when it began and ended.
SHORT = toy("began = time.time(); ready(); time.sleep(0.4); tell('result', values={'span': [began, time.time()]})")


@dataclass
class Machine:
    """Runs of one home folder, on this machine."""

    home: Path

    def __post_init__(self) -> None:
        self.jobs: list[Job] = []

    def job(self, name: str) -> Job:
        made = Job(RunFolder.of(f"{name}-{self.home.name}", self.home).job("train"))
        self.jobs.append(made)
        return made

    def start(self, name: str, *commands: tuple[str, ...], **fields: object) -> Job:
        job = self.job(name)
        job.start(job.plan(*commands, slots=len(commands), **fields))
        return job

    def rows(self) -> dict[str, tuple[int, ...]]:
        return {row.claim.job_id.partition("-")[0]: row.claim.slots for row in SlotTable.here(self.home).read()}


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    """A machine of two slots, whose table is empty in the end and whose processes are gone."""
    monkeypatch.setenv(settings.SLOTS, "2")
    made = Machine(tmp_path)
    yield made
    for job in made.jobs:
        stop(job.folder, "the test is over", wait_s=10)
    left = [pid for job in made.jobs for pid in job.marked()]
    for job in made.jobs:
        sweep(job.folder.job_id, job_dir=job.folder.path)
    assert left == [], "processes were left behind"
    assert made.rows() == {}, "slots were left behind"


def _is_queued(job: Job) -> bool:
    return job.folder.status.exists() and job.status.state is JobState.QUEUED


def _is_running(job: Job) -> bool:
    return job.folder.status.exists() and job.status.state is JobState.RUNNING


def _read_spans(job: Job) -> list[tuple[float, float]]:
    """When each rank began and ended, as it told itself."""
    events = [json.loads(line) for line in job.folder.events.read_text().splitlines()]
    return [tuple(event["values"]["span"]) for event in events if event["event"] == "result"]


@pytest.mark.parametrize(("slots", "ranks", "gangs"), [(2, 2, 2), (3, 2, 3), (3, 3, 3)])
def test_gangs_that_start_at_once_run_one_after_the_other(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, slots: int, ranks: int, gangs: int
) -> None:
    """Two that each need both slots; three that want two of three, acquired one at a time, would wait for ever."""
    monkeypatch.setenv(settings.SLOTS, str(slots))
    jobs = [machine.job(f"gang{number}") for number in range(gangs)]
    barrier = threading.Barrier(gangs)

    def start(job: Job) -> None:
        plan = job.plan(*[SHORT] * ranks, slots=ranks)
        barrier.wait()
        job.start(plan)

    threads = [threading.Thread(target=start, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [job.follow().state for job in jobs] == [JobState.SUCCEEDED] * gangs
    spans = sorted((min(b for b, _ in s), max(e for _, e in s), len(s)) for s in map(_read_spans, jobs))
    assert [count for *_, count in spans] == [ranks] * gangs
    for (_, ended, _), (began, *_) in itertools.pairwise(spans):
        assert ended < began, "two gangs held slots at the same time"


def test_gangs_that_fit_beside_each_other_run_beside_each_other(machine: Machine) -> None:
    one, two = machine.start("one", WORKS), machine.start("two", WORKS)
    wait_until(lambda: _is_running(one) and _is_running(two))
    assert sorted(machine.rows().values()) == [(0,), (1,)]


def test_the_log_of_who_waits_says_who_holds_the_slots(machine: Machine) -> None:
    holder = machine.start("holder", WORKS, WORKS)
    wait_until(lambda: _is_running(holder))
    waiting = machine.start("waiting", SHORT, SHORT)
    found = waiting.wait_for_text(r"waiting for 2 of 2 slots of \S+: held by (\S+) \(2 slots, since \d\d:\d\d\)")
    assert found[1] == holder.folder.job_id
    assert machine.rows() == {"holder": (0, 1), "waiting": ()}, "who waits holds nothing"
    assert waiting.marked() == []
    cancel(holder.folder, "enough")
    assert waiting.follow().state is JobState.SUCCEEDED


def test_a_killed_holder_holds_nothing(machine: Machine) -> None:
    """`kill -9` of its supervisor: the next one starts within 2 s, when the ranks of the dead one are gone."""
    holder = machine.start("holder", STUBBORN, STUBBORN)
    wait_until(lambda: _is_running(holder))
    ranks = [rank.pid for rank in holder.status.ranks if rank.pid is not None]
    waiting = machine.start("waiting", WORKS, WORKS)
    wait_until(lambda: _is_queued(waiting))
    supervisor = holder.supervisor
    supervisor.send_signal(signal.SIGKILL)
    seconds = wait_until(lambda: _is_running(waiting), 5)
    print(f"the waiting gang ran {seconds:.2f} s after the kill")
    assert seconds < 2
    assert all(map(is_gone, ranks))
    waiting.wait_for_text(f"dropped the claim of {holder.folder.job_id}: its supervisor .pid {supervisor.pid}. is dead")


def test_a_killed_waiter_holds_nobody_up(machine: Machine) -> None:
    holder = machine.start("holder", WORKS, WORKS)
    wait_until(lambda: _is_running(holder))
    killed = machine.start("killed", WORKS, WORKS)
    wait_until(lambda: _is_queued(killed))
    behind = machine.start("behind", WORKS)
    wait_until(lambda: _is_queued(behind))
    killed.supervisor.send_signal(signal.SIGKILL)
    cancel(holder.folder, "enough")
    wait_until(lambda: _is_running(behind), 5)


@pytest.mark.parametrize("how", ["cancel", "stop", "SIGTERM", "lease"])
def test_the_end_in_the_queue_leaves_nothing(machine: Machine, how: str) -> None:
    holder = machine.start("holder", WORKS, WORKS)
    wait_until(lambda: _is_running(holder))
    waiting = machine.start("waiting", WORKS, WORKS, limits={"lease_s": 1.5 if how == "lease" else 30})
    wait_until(lambda: _is_queued(waiting))
    supervisor = waiting.supervisor
    if how == "cancel":
        cancel(waiting.folder, "enough")
    elif how == "stop":
        assert stop(waiting.folder, "ganger stop") is not None
    elif how == "SIGTERM":
        supervisor.send_signal(signal.SIGTERM)
    wait_until(lambda: waiting.folder.result.exists(), 5)
    wait_until(lambda: is_gone(supervisor.pid), 5)
    result = JobResult.read(waiting.folder.result)
    assert result is not None
    assert (result.state, result.exit_codes) == (JobState.CANCELLED, {})
    assert machine.rows() == {"holder": (0, 1)}
    assert _is_running(holder)


def test_a_try_again_in_the_queue_joins_it(machine: Machine) -> None:
    """K19: it takes no second place."""
    holder = machine.start("holder", WORKS, WORKS)
    wait_until(lambda: _is_running(holder))
    waiting = machine.start("waiting", SHORT, SHORT)
    wait_until(lambda: _is_queued(waiting))
    assert waiting.start(waiting.plan(SHORT, SHORT, slots=2))
    assert list(machine.rows()) == ["holder", "waiting"]


def test_more_than_the_machine_has_is_refused_at_once(machine: Machine) -> None:
    holder = machine.start("holder", WORKS, WORKS)
    wait_until(lambda: _is_running(holder))
    began = time.monotonic()
    result = machine.start("large", *[WORKS] * 3).follow()
    assert time.monotonic() - began < 5
    assert result.failure is not None
    assert result.failure.kind == "PreflightError"
    assert "must be at most the slots of" in result.failure.message
    assert list(machine.rows()) == ["holder"]


def test_a_stopped_process_with_the_table_in_its_hands_does_not_keep_a_job_from_being_cancelled(
    machine: Machine,
) -> None:
    table = SlotTable.here(machine.home)
    table.path.parent.mkdir()
    program = "import fcntl, sys; f = open(sys.argv[1], 'w'); fcntl.flock(f, fcntl.LOCK_EX); print(); input()"
    command = [sys.executable, "-I", "-S", "-c", program, str(table.path.with_suffix(".lock"))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        other.send_signal(signal.SIGSTOP)
        job = machine.start("one", WORKS)
        wait_until(lambda: _is_queued(job))
        cancel(job.folder, "enough")
        assert job.follow().state is JobState.CANCELLED
        os.kill(other.pid, signal.SIGKILL)
