"""The slots of this machine: who holds them and who waits, in one file that every supervisor of the machine shares.

`$GANGER_HOME/slots/<host>.json`, read and written under a lock beside it. A job that holds slots writes its row into
its own folder, too, so that the table can be made again when it is lost or damaged. Rows of dead supervisors count for
nothing: whoever looks next drops them.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ConfigDict, ValidationError

from training.policy.slots import SlotClaim
from training.run.folder import FileModel, JobFolder, RunFolder
from training.run.job import SupervisorRef
from training.run.lock import is_alive, is_locked


class SlotRow(FileModel):
    """A claim, and the process that makes it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    claim: SlotClaim
    supervisor: SupervisorRef


class _TableFile(FileModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    rows: list[SlotRow] = []


def ignore(text: str) -> None:
    """Take a text and do nothing."""


@dataclass(frozen=True, slots=True)
class SlotTable:
    """The table of one host in one home folder."""

    home: Path
    host: str

    @classmethod
    def here(cls, home: Path) -> SlotTable:
        """Return the table of this machine."""
        return cls(home, socket.gethostname())

    @property
    def path(self) -> Path:
        """The file."""
        return self.home / "slots" / f"{re.sub(r'[^A-Za-z0-9_.-]', '_', self.host)}.json"

    def read(self, say: Callable[[str], None] = ignore) -> list[SlotRow]:
        """Return the rows of living supervisors; what is found dead or damaged is said."""
        rows = self._read_file(say)
        return self._choose_living(self._collect_rows(say) if rows is None else rows, say)

    @contextlib.contextmanager
    def change(self, say: Callable[[str], None] = ignore) -> Iterator[list[SlotRow] | None]:
        """Yield the rows of living supervisors, for the block to change in place; None while somebody else has them.

        Raises:
            OSError: The table cannot be read or written.
        """
        with self._lock() as locked:
            if not locked:
                yield None
                return
            stored = self._read_file(say)
            rows = self._choose_living(self._collect_rows(say) if stored is None else stored, say)
            yield rows
            rows.sort(key=lambda row: row.claim.ticket)
            if rows != stored:  # they say something as long as their processes live: a loss of power ends both
                _TableFile(rows=rows).write(self.path, durable=False)

    def folder_of(self, job_id: str) -> JobFolder:
        """Return the folder of a job of this home."""
        run_id, _, job = job_id.partition("/")
        return RunFolder.of(run_id, self.home).job(job)

    @contextlib.contextmanager
    def _lock(self) -> Iterator[bool]:
        """Hold the lock for the block, if nobody else does; yield whether that is so. Never waits."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self.path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            held = True
        except BlockingIOError:
            held = False
        try:
            yield held
        finally:
            os.close(descriptor)

    def _read_file(self, say: Callable[[str], None]) -> list[SlotRow] | None:
        """Return what is stored; None where there is nothing, or nothing that can be read."""
        try:
            file = _TableFile.read(self.path)
        except ValidationError as error:
            problem = error.errors()[0]["msg"]
            say(f"{self.path} is damaged ({problem}): it is made again from the folders of the jobs that hold slots")
            return None
        return file.rows if file is not None else None

    def _choose_living(self, rows: Sequence[SlotRow], say: Callable[[str], None]) -> list[SlotRow]:
        dead = [row for row in rows if not self._is_alive(row)]
        for row in dead:
            say(f"dropped the claim of {row.claim.job_id}: its supervisor (pid {row.supervisor.pid}) is dead")
        return [row for row in rows if row not in dead]

    def _collect_rows(self, say: Callable[[str], None]) -> list[SlotRow]:
        """Return the rows that holders keep in their own folders."""
        found = []
        for path in (self.home / "runs").glob("*/jobs/*/slots.json"):
            try:
                row = SlotRow.read(path)
            except ValidationError as error:
                say(f"{path} is damaged ({error.errors()[0]['msg']}): what it held is not known")
                continue
            if row is not None and row.supervisor.host == self.host:
                found.append(row)
        return found

    def _is_alive(self, row: SlotRow) -> bool:
        """Whether the supervisor lives: as its pid and start time say, or as the lock of its job does.

        Start times come from a clock that may be set while the supervisor runs; the lock knows better. It is also held
        by whoever cleans up after a dead supervisor: so long its ranks may live.
        """
        return is_alive(row.supervisor) or is_locked(self.folder_of(row.claim.job_id))
