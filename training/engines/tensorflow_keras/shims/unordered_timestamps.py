"""Lets TensorFlow read the clock at several places of one function without putting these places into an order.

`tf.function` runs operations that are stateful and hold no resource one after the other, in the order in which they
were traced, wherever they are placed; `tf.timestamp` is one of them. The marks of time around the works of a pipeline
would so have one stage work at a time: on two cores, a step in two stages took 1.1 times the unsplit one.
Upstream: tensorflow/python/framework/auto_control_deps.py, `last_write_to_resource[None]`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from tensorflow.python.framework import auto_control_deps

_LIST = "SKIPPED_ORDER_INSENSITIVE_STATEFUL_OPS"


@contextlib.contextmanager
def unordered_timestamps() -> Iterator[None]:
    """Put no timestamps into an order in functions that are traced in the meantime."""
    ordered = getattr(auto_control_deps, _LIST)
    setattr(auto_control_deps, _LIST, ordered | {"Timestamp"})
    try:
        yield
    finally:
        setattr(auto_control_deps, _LIST, ordered)
