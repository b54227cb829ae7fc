"""Entry point of the supervisor: `python -m training.run.supervisor JOB_DIR [--lock-fd N]`.

One process per job, detached from whoever started it. It holds the job's lock as long as it lives; its ranks die with
it. What it prints goes to `supervisor.log`.
"""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
from pathlib import Path

from training import settings
from training.errors import EXIT_OK
from training.launch.local import LocalLauncher
from training.plan.job import JobPlan
from training.run.conclusion import exit_code_of
from training.run.end import read_last_status
from training.run.folder import JobFolder, RunFolder
from training.run.job import FailureHeadline, JobResult, JobState, SupervisorRef
from training.run.journal import Journal
from training.run.lock import JobLock, this_supervisor
from training.run.orphans import become_subreaper, end_orphans, reap_orphans
from training.run.outside import Outside, read_outside
from training.run.redact import Redactor
from training.run.scratch import Scratch
from training.run.slot_wait import SlotWait
from training.run.slots import SlotSeeker
from training.run.supervision import Mode, Supervision, Surroundings
from training.run.sweep import render_pids, sweep
from training.run.tracker_api import Tracker
from training.run.tracker_thread import TrackerThread

_TICK_S = 0.2
_IDLE_TICK_S = 0.02
_REAP_EVERY_S = 2.0


def main(arguments: list[str]) -> int:
    """Supervise the job in the folder that `arguments` name, and return the exit code that fits its result."""
    folder = JobFolder(Path(arguments[0]).absolute())
    lock = JobLock.inherit(int(arguments[2])) if len(arguments) > 1 else JobLock.acquire(folder)
    if lock is None:
        print(f"{folder.job_id} has a supervisor already.")
        return EXIT_OK
    try:
        result = _supervise(folder)
    except Exception as error:  # noqa: BLE001 - the border: a bug of ours must become a result, too
        traceback.print_exc()
        result = _describe_crash(folder, error)
    result.write(folder.result)
    return exit_code_of(result)


def _supervise(folder: JobFolder) -> JobResult:
    asked = _listen_to_signals()
    become_subreaper()
    this = this_supervisor()
    this.write(folder.supervisor, durable=False)
    plan = JobPlan.model_validate_json(folder.job.read_bytes())
    redactor = Redactor(os.environ)
    journal = Journal(folder, redactor)
    around = Surroundings(
        launcher=LocalLauncher(),
        journal=journal,
        tracker=_make_tracker_thread(plan, folder, redactor),
        sweep=lambda: _end_leftovers(folder),
        wall_clock=time.time,
        slots=_join_queue(plan, folder, this, journal),
        since=folder.supervisor.stat().st_mtime,
        first_attempt=_choose_attempt(folder),
        scratch=Scratch(folder),
    )
    leftovers = _end_leftovers(folder)
    Scratch(folder).remove()
    supervision = Supervision(plan, folder, around, time.monotonic())
    if leftovers:
        supervision.note(f"ended what an earlier try left behind: {render_pids(leftovers)}")
    try:
        return _step(supervision, folder, asked)
    except BaseException:
        supervision.abandon()
        raise
    finally:
        journal.close()


def _step(supervision: Supervision, folder: JobFolder, asked: list[str]) -> JobResult:
    """Tick until there is a result. Wakes up at once for output and ends of ranks, else a few times a second."""
    reaped_at = time.monotonic()
    while supervision.result is None:
        outside = Outside(cancel=asked[0]) if asked else read_outside(folder)
        now = time.monotonic()
        supervision.tick(now, outside)
        gang = supervision.gang
        if supervision.mode is Mode.RUNNING and gang is not None:
            gang.wait(_IDLE_TICK_S if gang.is_ending else _TICK_S)
        elif supervision.result is None:
            time.sleep(_TICK_S if supervision.mode is Mode.QUEUED else _IDLE_TICK_S)
        if gang is not None and now - reaped_at >= _REAP_EVERY_S:
            reap_orphans(spared=frozenset(rank.pid for rank in gang.ranks.values() if rank.pid is not None))
            reaped_at = now
    return supervision.result


def _listen_to_signals() -> list[str]:
    """Return a list that fills when somebody asks for the end by a signal."""
    asked: list[str] = []

    def ask(signum: int, frame: object) -> None:
        asked.append(f"{signal.Signals(signum).name} to the supervisor")

    signal.pthread_sigmask(signal.SIG_SETMASK, ())  # ranks inherit the mask
    for signum in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signum, ask)
    signal.signal(signal.SIGHUP, lambda signum, frame: None)  # a handler, not SIG_IGN, which ranks would inherit
    return asked


def _end_leftovers(folder: JobFolder) -> list[int]:
    return [*sweep(folder.job_id, job_dir=folder.path), *end_orphans()]


def _choose_attempt(folder: JobFolder) -> int:
    """Return the number after that of the last attempt of an earlier try."""
    status = read_last_status(folder)
    return status.attempt + 1 if status is not None else 1


def _make_tracker_thread(plan: JobPlan, folder: JobFolder, redactor: Redactor) -> TrackerThread | None:
    tracking = plan.tracking
    if tracking is None:
        return None

    def make_tracker() -> Tracker:
        from training.tracking.writer import open_tracker  # its imports cost what a job without tracking need not pay

        return open_tracker(tracking, folder, RunFolder(folder.path.parent.parent))

    return TrackerThread(make_tracker, redactor)


def _join_queue(plan: JobPlan, folder: JobFolder, this: SupervisorRef, journal: Journal) -> SlotWait | None:
    if not plan.slots:
        return None
    seeker = SlotSeeker(folder, this, wanted=plan.slots, total=settings.read_slots(), say=journal.note)
    return SlotWait(seeker, timeout_s=plan.queue_timeout_s, now=time.monotonic(), say=journal.note)


def _describe_crash(folder: JobFolder, error: Exception) -> JobResult:
    status = read_last_status(folder)
    now = time.time()
    headline = FailureHeadline(
        kind="InfrastructureError",
        message=f"the supervisor itself failed: {type(error).__name__}: {error}. See {folder.supervisor_log}.",
        detail=traceback.format_exc(),
    )
    attempts = status.attempt if status is not None else 1
    return JobResult(state=JobState.FAILED, started_at=now, ended_at=now, attempts=attempts, failure=headline)


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    os._exit(code)  # a thread that some library left behind must not keep a finished job's lock
