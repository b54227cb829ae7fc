"""Has SIGTERM mean to a script what it meant before it made a MultiWorkerMirroredStrategy.

TensorFlow's coordination service puts a handler of its own in the place of whatever was there (`SigtermNotifier`), and
the process trains on. Upstream: https://github.com/tensorflow/tensorflow, `tsl/distributed_runtime/preemption`.
"""

from __future__ import annotations

import functools
import signal
import threading
from typing import Any


def keep_sigterm(strategies: Any) -> None:
    """Repair the module `tensorflow.python.distribute.collective_all_reduce_strategy` of this process."""
    strategy = strategies.CollectiveAllReduceStrategy
    make = strategy.__init__

    @functools.wraps(make)
    def init(self: Any, *arguments: Any, **options: Any) -> None:
        make(self, *arguments, **options)
        wanted = signal.getsignal(signal.SIGTERM)  # as Python knows it
        if wanted is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, wanted)

    strategy.__init__ = init
