"""Whether what a job declared to make was made: success means trained (K15)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

#: File systems stamp with a coarser clock than they answer with.
_TOLERANCE_S = 0.05


def find_missing_outputs(outputs: Sequence[str], since: float) -> list[str]:
    """Return, in words, what is wrong with the outputs of a job; nothing if all exist and are newer than its start.

    Args:
        outputs: Paths of files or folders; a folder is as new as the newest file in it.
        since: Modification time of a file that was written at the start: the same clock as that of the outputs.
    """
    problems = []
    for output in outputs:
        newest = _read_newest(Path(output))
        if newest is None:
            problems.append(f"{output} is missing")
        elif newest < since - _TOLERANCE_S:
            problems.append(f"{output} is older than the job, by {since - newest:.1f} s")
    return problems


def _read_newest(path: Path) -> float | None:
    try:
        newest = path.stat().st_mtime
    except OSError:
        return None
    for entry in path.rglob("*") if path.is_dir() else ():
        newest = max(newest, entry.stat().st_mtime)
    return newest
