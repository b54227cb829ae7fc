"""Whose turn it is to begin, in a job whose processes come up one after the other, each when somebody asks for it.

All processes are started together, so that the gang is whole and has its ports; those whose turn has not come wait
before they do anything. The file `turn` of the job folder holds the number of the last turn that was called; without
the file nobody waits, which is how a job runs that nobody brings up one by one.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from training.run.folder import JobFolder, write_atomic

_POLL_S = 0.1


def read_turn(folder: JobFolder) -> int | None:
    """Return the last turn that was called; None where nobody has to wait."""
    try:
        return int(folder.turn.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None


def call_turn(folder: JobFolder, turn: int) -> None:
    """Let all whose turn is up to `turn` begin, in a job that runs. What was called before stays called."""
    called = read_turn(folder)
    if called is not None and called < turn:
        write_turn(folder, turn)


def write_turn(folder: JobFolder, turn: int) -> None:
    """Let those whose turn is up to `turn` begin, and no others, in a job that is not yet started."""
    folder.path.mkdir(parents=True, exist_ok=True)
    write_atomic(folder.turn, str(turn), durable=False)


def call_all(folder: JobFolder) -> None:
    """Let everybody begin."""
    folder.turn.unlink(missing_ok=True)


def is_called(turn: int, called: int | None) -> bool:
    """Whether the turn of a process has come.

    >>> is_called(0, 0), is_called(2, 1), is_called(2, None)
    (True, False, True)
    """
    return called is None or turn <= called


def wait_for_turn(folder: JobFolder, turn: int, beat: Callable[[str], None]) -> None:
    """Return when the turn of this process has come."""
    if is_called(turn, read_turn(folder)):
        return
    beat("waiting for its turn")
    while not is_called(turn, read_turn(folder)):
        time.sleep(_POLL_S)
