"""Ends a rank on SIGTERM: cleanly where Python still runs, and all the same where it is stuck in native code."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import NoReturn

from training.errors import EXIT_CANCELLED

#: A rank that waits for a dead peer inside of a collective operation never gets to run a Python handler.
_PATIENCE_S = 2.0
_told = threading.Event()


class Terminated(SystemExit):
    """Raised in the main thread on SIGTERM. Not an `Exception`, so that user code does not catch it by accident."""


def end_on_sigterm(patience_s: float = _PATIENCE_S) -> None:
    """Have SIGTERM raise `Terminated`, and end the process `patience_s` seconds later if that did not.

    To be called from the main thread. The interpreter's C handler writes the signal's number to a pipe even while the
    main thread is in native code; a thread reads it.
    """
    receiver, sender = os.pipe()
    os.set_blocking(sender, False)
    signal.set_wakeup_fd(sender, warn_on_full_buffer=False)
    signal.signal(signal.SIGTERM, _raise_terminated)
    os.register_at_fork(before=_hold_back, after_in_parent=_let_through, after_in_child=_forget)
    threading.Thread(target=_insist, args=(receiver, patience_s), name="termination", daemon=True).start()


def take_sigterm_back() -> None:
    """Install our handler of SIGTERM again, after a library has put its own in its place.

    TensorFlow's coordination service does so when a MultiWorkerMirroredStrategy is made (`SigtermNotifier`): a healthy
    rank would train on until it is killed.
    """
    signal.signal(signal.SIGTERM, _raise_terminated)


def is_told_to_end() -> bool:
    """Return whether SIGTERM has come.

    Whatever fails from then on does so because of it. In a gang a peer that ended a moment earlier makes a collective
    fail, and that error may take the place of `Terminated` on its way up.
    """
    return _told.is_set()


def _hold_back() -> None:
    """Before a fork: until the child has forgotten all this, a SIGTERM to it would be told to its parent's pipe."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})


def _let_through() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})


def _forget() -> None:
    """In a forked child, such as one of a process pool."""
    _told.clear()
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _let_through()


def _raise_terminated(signum: int, frame: object) -> NoReturn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once is enough: a second one would disturb the clean-up
    _told.set()
    raise Terminated(EXIT_CANCELLED)


def _insist(receiver: int, patience_s: float) -> None:
    while signal.SIGTERM not in os.read(receiver, 64):
        pass
    time.sleep(patience_s)
    os._exit(EXIT_CANCELLED)
