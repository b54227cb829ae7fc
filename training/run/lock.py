"""Who supervises a job: a lock that the kernel drops with its last holder, and a name for the process that holds it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
from dataclasses import dataclass
from typing import Self

from training.run.folder import JobFolder
from training.run.job import SupervisorRef


@dataclass(slots=True)
class JobLock:
    """The right to start, supervise or clean up a job.

    It belongs to the open file, not to a process: whoever starts a supervisor takes it and hands the descriptor on, so
    that there is no moment in which nobody holds it.
    """

    descriptor: int

    @classmethod
    def acquire(cls, folder: JobFolder) -> JobLock | None:
        """Take the lock, or return None where somebody holds it."""
        folder.path.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        except BaseException:
            os.close(descriptor)
            raise
        return cls(descriptor)

    @classmethod
    def inherit(cls, descriptor: int) -> JobLock:
        """Go on with a lock that the parent process took; children of this process do not get it."""
        os.set_inheritable(descriptor, False)
        return cls(descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.release()

    def release(self) -> None:
        """Let go of it, in this process."""
        with contextlib.suppress(OSError):
            os.close(self.descriptor)


def this_supervisor() -> SupervisorRef:
    """Return what names this process for good."""
    import psutil

    return SupervisorRef(pid=os.getpid(), started_at=psutil.Process().create_time(), host=socket.gethostname())


def is_supervised(folder: JobFolder) -> bool:
    """Whether a supervisor of the job lives. Asks the process, and the lock where that cannot be asked."""
    ref = SupervisorRef.read(folder.supervisor)
    return (ref is not None and is_alive(ref)) or is_locked(folder)


def is_locked(folder: JobFolder) -> bool:
    """Whether somebody supervises, starts or cleans up the job."""
    if not folder.lock.exists():
        return False
    lock = JobLock.acquire(folder)
    if lock is None:
        return True
    lock.release()
    return False


def is_alive(ref: SupervisorRef) -> bool:
    """Whether the process lives on this machine; False for one on another machine, which only its lock tells."""
    import psutil

    if ref.host not in ("", socket.gethostname()):
        return False
    try:
        process = psutil.Process(ref.pid)
        return abs(process.create_time() - ref.started_at) < 0.01 and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
