"""One start or stop of services at a time in a home folder."""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Iterator

from training.serve.record import ServicesFolder


@contextlib.contextmanager
def services_lock(folder: ServicesFolder) -> Iterator[None]:
    """Hold the lock of the services; another start or stop waits meanwhile."""
    folder.path.mkdir(parents=True, exist_ok=True)
    with folder.lock.open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield
