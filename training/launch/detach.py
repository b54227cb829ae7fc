"""Run as `python -I -S detach.py PROGRAM ARGUMENT...`: starts PROGRAM in a session of its own and ends at once.

PROGRAM is then nobody's child: whoever started it neither has to wait for it, nor takes it along when it is killed with
its process group or its children. Standard library only.
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":
    if os.fork() != 0:
        os._exit(0)
    os.setsid()
    os.execvp(sys.argv[1], sys.argv[1:])
