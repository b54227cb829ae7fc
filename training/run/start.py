"""Starts the supervisor of a job, exactly one, or finds the one that lives."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from training import launch
from training.errors import LaunchError
from training.launch.environment import keep_out_airflow
from training.plan.job import JobPlan
from training.run.end import renew_lease
from training.run.folder import JobFolder, write_atomic
from training.run.job import JobResult, JobState, SupervisorRef
from training.run.lock import JobLock, is_alive

_DETACH = Path(launch.__file__).with_name("detach.py")
_ATTACH_WAIT_S = 20.0


def _ignore(line: str) -> None:
    """Take a line and do nothing."""


def start_or_attach(
    folder: JobFolder,
    plan: JobPlan,
    *,
    resume_failed: bool = True,
    keep_succeeded: bool = True,
    on_line: Callable[[str], None] = _ignore,
) -> bool:
    """Have the job run: start its supervisor, or find the one that lives.

    A job that has succeeded is left as it is, unless `keep_succeeded` says otherwise. One that has failed or was
    cancelled is started again, its old result archived: that is what an Airflow retry wants.

    Args:
        folder: Where the job lives; it need not exist.
        plan: What to start. A running job keeps the plan that it has.
        resume_failed: Whether to start a failed or cancelled job again; if not, its result stands.
        keep_succeeded: Whether the result of a job that has succeeded stands; if not, it runs again.
        on_line: Takes what there is to say.

    Returns:
        Whether a running job was found. `follow` is right in all cases.

    Raises:
        LaunchError: The supervisor cannot be started.
    """
    deadline = time.monotonic() + _ATTACH_WAIT_S
    while time.monotonic() < deadline:
        lock = JobLock.acquire(folder)
        if lock is not None:
            with lock:  # by then the supervisor has it
                if not _is_kept(folder, keep_succeeded, not resume_failed, on_line):
                    _start(folder, plan, lock)
                return False
        if _is_under_way(folder):
            return True
        time.sleep(0.02)  # somebody is about to start it, or it is about to end
    raise LaunchError(
        f"{folder.lock} is held, so a supervisor must come up within {_ATTACH_WAIT_S:g} s. Received: none."
    )


def _is_under_way(folder: JobFolder) -> bool:
    """Whether the holder of the lock supervises, rather than being about to start or to end."""
    ref = SupervisorRef.read(folder.supervisor)
    if ref is None or folder.result.exists():
        return False
    return ref.host not in ("", socket.gethostname()) or is_alive(ref)


def _is_kept(folder: JobFolder, keep_succeeded: bool, keep_failed: bool, on_line: Callable[[str], None]) -> bool:
    """Whether an old result stands. If not, it is archived, and the job can start."""
    result = JobResult.read(folder.result)
    if result is None:
        if folder.supervisor.exists():
            on_line(f"The supervisor of {folder.job_id} died without a result: the job is started again.")
        return False
    if keep_succeeded if result.state is JobState.SUCCEEDED else keep_failed:
        on_line(f"{folder.job_id} is over already: {result.state}. Its result is kept.")
        return True
    number = 1 + sum(1 for _ in folder.path.glob(folder.archived_result(0).name.replace("0", "*")))
    folder.result.rename(folder.archived_result(number))
    on_line(f"{folder.job_id} {_say(result.state)} before: it is started again.")
    return False


def _say(state: JobState) -> str:
    return "was cancelled" if state is JobState.CANCELLED else str(state)


def _start(folder: JobFolder, plan: JobPlan, lock: JobLock) -> None:
    folder.supervisor.unlink(missing_ok=True)
    folder.cancel.unlink(missing_ok=True)
    renew_lease(folder)
    write_atomic(folder.job, plan.model_dump_json(indent=2) + "\n", durable=False)
    _spawn(folder, lock)


def _spawn(folder: JobFolder, lock: JobLock) -> None:
    """Start the supervisor in a session of its own, with the lock.

    `-P` keeps the working directory off its import path: a folder called `training` there is likely enough.
    """
    python = sys.executable
    detach = [python, "-I", "-S", str(_DETACH)]
    supervisor = [python, "-P", "-m", "training.run.supervisor", str(folder.path), "--lock-fd", str(lock.descriptor)]
    with folder.supervisor_log.open("ab") as log:
        done = subprocess.run(
            detach + supervisor,
            check=False,
            env=keep_out_airflow(os.environ) | {"PYTHONUNBUFFERED": "1"},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=(lock.descriptor,),
            start_new_session=True,
        )
    if done.returncode != 0:
        raise LaunchError(f"{python} must start the supervisor. Received: exit code {done.returncode}.")
