"""Toy ranks for process tests: short Python programs that need the standard library only, and speak events by hand."""

from __future__ import annotations

import sys

_PRELUDE = """
import json, os, signal, subprocess, sys, time
rank = int(os.environ["GANGER_RANK"])
attempt = int(os.environ["GANGER_ATTEMPT"])
def tell(event, **fields):
    os.write(1, ("\\x1e" + json.dumps({"event": event, "rank": rank, "time": time.time(), **fields}) + "\\n").encode())
def ready():
    tell("ready", pid=os.getpid())
def step(number, loss=0.5):
    tell("step", step=number, epoch=1, metrics={"loss": loss})
def say(text):
    print(text, flush=True)
"""


def toy(program: str) -> tuple[str, ...]:
    """Return the command of a rank that runs `program` and tells that it is done; it starts in some 20 ms."""
    return (sys.executable, "-I", "-S", "-c", f"{_PRELUDE}{program}\ntell('done')")


#: Joins, then works until it is ended.
WORKS = toy("ready()\nsay('working')\nwhile True: time.sleep(60)")
#: Joins and ends well.
ENDS = toy("ready()\nsay('done')")
#: Joins, and takes no hint.
STUBBORN = toy("signal.signal(signal.SIGTERM, signal.SIG_IGN)\nready()\nsay('stubborn')\nwhile True: time.sleep(60)")
#: Joins, leaves a grandchild that hides in a session of its own and takes no hint, and works on.
_HIDING = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print('hidden', os.getpid(), flush=True)
time.sleep(600)
"""
_FORK = f"""
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execv(sys.executable, [sys.executable, "-I", "-S", "-c", {_HIDING!r}])
    os._exit(0)
"""
LEAVES_A_HIDDEN_CHILD = toy(f"{_FORK}\nready()\nwhile True: time.sleep(60)")
#: The same, and its hidden child drops the mark from its environment.
LEAVES_AN_UNMARKED_CHILD = toy(f"{_FORK.replace('os.execv(', 'os.execve(').replace('])', '], {})')}\nready()")
