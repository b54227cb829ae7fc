"""Run as `python -I -S guard.py PARENT_PID PROGRAM ARGUMENT...`: becomes PROGRAM, which dies when its parent dies.

`preexec_fn` could do the same, but is unsafe in a process with threads, such as the tracker. The setting survives the
exec and is not inherited by children. Standard library only: this runs before any environment is set up.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1  # <linux/prctl.h>
_NOT_FOUND = 127


def main(parent: int, argv: list[str]) -> int:
    """Arm the parent-death signal and become `argv`; return only on failure."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before the signal was armed, and would never be noticed
        return 128 + signal.SIGKILL
    try:
        os.execvp(argv[0], argv)
    except OSError as error:
        print(f"{argv[0]} must be a program that can be run. Received: {error.strerror}.", file=sys.stderr)
        return _NOT_FOUND


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
