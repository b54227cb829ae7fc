"""Checkpoints are damaged, and the disk that they are on is full."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from tests.chaos.fault import Kind
from tests.chaos.injections.injection import Injection
from tests.chaos.trial import Trial

#: A checkpoint of this training has about 120 KB, and three are kept.
_DISK = "2m"
_BALLAST = "ballast"
_LIMIT_S = 10.0


def _kill_at_checkpoint(trial: Trial) -> list[Path]:
    """Kill the rank when the checkpoint is there; return the tensors of all that the next attempt will find.

    Newest first, and only when the gang is gone, which may write another one before it is.
    """
    trial.wait_for(trial.fault.moment)
    end = time.monotonic() + _LIMIT_S
    while trial.run.last_checkpoint() < trial.fault.moment.step and time.monotonic() < end:
        time.sleep(0.001)
    trial.kill_rank()
    trial.wait_until_gone()
    return sorted((path / "state.safetensors" for path in trial.run.folder.checkpoints.glob("step-*")), reverse=True)


def _truncate(path: Path, place: float) -> None:
    os.truncate(path, int(path.stat().st_size * place))


def _flip(path: Path, place: float) -> None:
    with path.open("r+b") as stream:
        stream.seek(int(path.stat().st_size * place))
        byte = stream.read(1)
        stream.seek(-1, os.SEEK_CUR)
        stream.write(bytes([byte[0] ^ 0xFF]))


def _truncate_newest(trial: Trial) -> None:
    _truncate(_kill_at_checkpoint(trial)[0], trial.fault.place)


def _flip_newest(trial: Trial) -> None:
    _flip(_kill_at_checkpoint(trial)[0], trial.fault.place)


def _damage_all(trial: Trial) -> None:
    for path in _kill_at_checkpoint(trial):
        _flip(path, trial.fault.place)


def can_mount() -> bool:
    """Whether this process may mount a tmpfs."""
    probe = ["unshare", "-m", "mount", "-t", "tmpfs", "-o", f"size={_DISK}", "ganger-chaos", tempfile.gettempdir()]
    return shutil.which("unshare") is not None and subprocess.run(probe, capture_output=True).returncode == 0


def _mount_disk(trial: Trial) -> None:
    folder = trial.run.folder.checkpoints
    folder.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={_DISK}", "ganger-chaos", str(folder)], check=True)
    trial.closing.append(lambda: subprocess.run(["umount", str(folder)], check=True))


def _fill_disk(trial: Trial) -> None:
    """Put the checkpoints on a small disk, and leave no room on it when the moment comes."""
    _mount_disk(trial)
    trial.wait_for(trial.fault.moment)
    with (trial.run.folder.checkpoints / _BALLAST).open("wb", buffering=0) as stream:
        try:
            while True:
                stream.write(bytes(4096))
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise


def _make_room(trial: Trial) -> None:
    (trial.run.folder.checkpoints / _BALLAST).unlink()


def _fill_disk_for_a_while(trial: Trial) -> None:
    _fill_disk(trial)
    trial.wait_for(trial.fault.second)
    _make_room(trial)


STORAGE: dict[Kind, Injection] = {
    Kind.CHECKPOINT_TRUNCATED: Injection(act=_truncate_newest),
    Kind.CHECKPOINT_FLIPPED: Injection(act=_flip_newest),
    Kind.CHECKPOINTS_ALL_DAMAGED: Injection(act=_damage_all),
    Kind.DISK_FULL: Injection(act=_fill_disk, mend=_make_room),
    Kind.DISK_FULL_FOR_A_WHILE: Injection(act=_fill_disk_for_a_while),
}
#: Kinds that mount a disk.
DISKS = frozenset({Kind.DISK_FULL, Kind.DISK_FULL_FOR_A_WHILE})
