"""Folders that appear, and vanish, whole or not at all: written under a temporary name, flushed, then renamed."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from training.errors import InfrastructureError

_TEMPORARY = ".new-"
_OLD = ".old-"
_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextlib.contextmanager
def new_folder(path: Path, needed: int = 0) -> Iterator[Path]:
    """Yield an empty folder that takes the place of `path` when the block ends well, and vanishes when it does not.

    An old folder at `path` stays whole until the new one is; then it is removed.

    Args:
        path: What the folder will be called.
        needed: Bytes that it will hold at least; refused at once where the disk has less.

    Raises:
        InfrastructureError: The disk is full or the folder cannot be written; the old one is as it was.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if needed > shutil.disk_usage(path.parent).free:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        temporary = Path(tempfile.mkdtemp(dir=path.parent, prefix=f"{_TEMPORARY}{path.name}-"))
    except OSError as error:
        raise explain_os_error(error, path, needed) from error
    try:
        yield temporary
        _flush_tree(temporary)
        temporary.chmod(0o755)
        _replace_folder(temporary, path)
    except OSError as error:
        needed = max(needed, measure_folder(temporary))
        shutil.rmtree(temporary, ignore_errors=True)
        raise explain_os_error(error, path, needed) from error
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def remove_folder(path: Path) -> None:
    """Remove a folder so that nobody ever finds a part of it under its name: renamed first, then removed.

    `sweep_unfinished` removes what a kill in mid-removal leaves. A folder that is not there is no error.

    Raises:
        InfrastructureError: The folder that it is in cannot be written.
    """
    old = path.with_name(f"{_OLD}{path.name}")
    shutil.rmtree(old, ignore_errors=True)  # of a removal that was killed
    try:
        path.rename(old)
    except FileNotFoundError:
        return
    except OSError as error:
        raise explain_os_error(error, path) from error
    shutil.rmtree(old, ignore_errors=True)


def sweep_unfinished(parent: Path, name: str = "") -> list[Path]:
    """Remove what killed writers left in `parent`, for the folder `name` or for all; return what was removed.

    The caller must be the only writer.
    """
    found = [path for mark in (_TEMPORARY, _OLD) for path in parent.glob(f"{mark}{name}*")]
    for path in found:
        shutil.rmtree(path, ignore_errors=True)
    return found


def measure_folder(path: Path) -> int:
    """Return the bytes of all files under `path`."""
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


def explain_os_error(error: OSError, path: Path, needed: int = 0) -> OSError | InfrastructureError:
    """Return an error that names path, needed and free space where the disk is full, else `error` itself."""
    if error.errno in _DISK_FULL:
        existing = next(folder for folder in (path, *path.parents) if folder.exists())
        free = shutil.disk_usage(existing).free
        more = f"more than {needed} bytes" if needed else "more space"
        return InfrastructureError(
            f"{path} needs {more} ({error.strerror}). Received: {free} bytes free on its disk. "
            "What was there before is whole."
        )
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return InfrastructureError(
            f"{path} must be writable. Received: {error.strerror}, for {error.filename or path}."
        )
    return error


def _replace_folder(new: Path, path: Path) -> None:
    old = None
    if path.exists():
        old = new.with_name(new.name.replace(_TEMPORARY, _OLD, 1))
        path.rename(old)
    new.rename(path)
    _flush(path.parent)
    if old is not None:
        shutil.rmtree(old, ignore_errors=True)


def _flush_tree(folder: Path) -> None:
    for path in folder.rglob("*"):
        _flush(path)
    _flush(folder)


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
