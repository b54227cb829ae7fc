"""The temporary folder of a job's ranks: what they leave there when they are killed goes with it.

Python, TensorFlow (AutoGraph writes a module per traced function) and most others put such files where `TMPDIR` says. A
rank that is killed cannot remove its own, so all ranks of a job are given a folder that the supervisor removes, or
whoever cleans up after it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path

from pydantic import ConfigDict

from training.errors import LaunchError
from training.run.folder import FileModel, JobFolder

_OWNER_ONLY = 0o700


class ScratchRef(FileModel):
    """Where the folder is: another process may have another `TMPDIR`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: str


@dataclass(frozen=True, slots=True)
class Scratch:
    """The temporary folder of one job, on the machine that its ranks run on."""

    job: JobFolder

    @property
    def name(self) -> str:
        """Its name: a function of the job, short, since the address of a Unix socket in it has 107 bytes at most."""
        digest = hashlib.sha256(f"{self.job.job_id}\0{self.job.path}".encode()).hexdigest()
        return f"ganger-{digest[:12]}"

    def make(self) -> Path:
        """Make it afresh, for this user alone, in the system's temporary folder or in `TMPDIR`.

        Raises:
            LaunchError: It cannot be made.
        """
        problem = self.remove()
        path = Path(tempfile.gettempdir()).absolute() / self.name
        try:
            ScratchRef(path=str(path)).write(self.job.scratch, durable=False)  # before it is there to be forgotten
            path.mkdir(mode=_OWNER_ONLY)
        except OSError as error:
            raise LaunchError(
                f"the ranks must get a temporary folder of their own, {path}. Received: {problem or error.strerror}. "
                "Free the name, or set TMPDIR to another folder."
            ) from error
        return path

    def remove(self) -> str:
        """Remove it with all that is in it; return what keeps it from going, in words. Nothing there is no problem."""
        path = self._find()
        if path is None:
            return ""
        shutil.rmtree(path, ignore_errors=True)
        return f"the temporary folder {path} could not be removed" if path.exists() else ""

    def _find(self) -> Path | None:
        """Return the folder if it is there and certainly the one that this user made for this job."""
        try:
            ref = ScratchRef.read(self.job.scratch)
            path = Path(ref.path) if ref is not None else None
            status = path.lstat() if path is not None and path.name == self.name else None
        except (OSError, ValueError):  # no such folder, or a record of another version
            return None
        is_ours = status is not None and stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
        return path if is_ours else None
