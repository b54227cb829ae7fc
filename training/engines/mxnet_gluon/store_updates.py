"""What a server of `dist_async` does with the arrays that are pushed to it: updates, sums, and states in and out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import mxnet as mx
import numpy as np

from training.engines.mxnet_gluon.store_keys import COUNTS, WEIGHT, StateKey, is_sum, parse_state_key
from training.engines.mxnet_gluon.trainer_state import list_numbers


class StoreUpdates:
    """The optimizer of one server, with what it remembers of its parameters.

    Args:
        servers: Number of servers, by which states are placed.
    """

    def __init__(self, servers: int) -> None:
        self._servers = servers
        self._updater: Any = None
        self._weights: dict[int, Any] = {}

    def set_optimizer(self, optimizer: Any) -> None:
        """Take an optimizer that has updated nothing yet."""
        self._updater = mx.optimizer.get_updater(optimizer)

    def __call__(self, key: int, received: Any, stored: Any) -> None:
        """Do what `key` says with an array and the one that is kept under its number; returns when that is done.

        What was received lies in memory of the network, and is gone then. MXNet itself waits for `stored` alone.
        """
        self._obey(key, received, stored)
        mx.nd.waitall()

    def _obey(self, key: int, received: Any, stored: Any) -> None:
        if is_sum(key):
            stored += received
            return
        state = parse_state_key(key, self._servers)
        if state is None:
            self._update(key, received, stored)
        elif state.is_write:
            self._take(state, received)
        else:
            stored[:] = self._give(state, stored)

    def _update(self, index: int, gradient: Any, weight: Any) -> None:
        if index in self._weights:
            weight[:] = self._weights.pop(index).reshape(weight.shape)
        else:
            self._updater(index, gradient, weight)

    def _take(self, key: StateKey, received: Any) -> None:
        if key.part == COUNTS:
            write_counts(self._updater.optimizer, key.parameter, received.asnumpy())
            return
        if key.part == WEIGHT:  # what is pushed next under the parameter's own number puts it there
            self._weights[key.parameter] = received.copy()
            return
        states = self._updater.states
        if key.parameter not in states:
            states[key.parameter] = self._updater.optimizer.create_state_multi_precision(
                key.parameter, mx.nd.zeros(received.shape)
            )
            self._updater.states_synced[key.parameter] = True
        array = list(iter_arrays(states[key.parameter]))[key.part]
        array[:] = received.reshape(array.shape)

    def _give(self, key: StateKey, stored: Any) -> Any:
        if key.part == COUNTS:
            return mx.nd.array(read_counts(self._updater.optimizer, key.parameter))
        return list(iter_arrays(self._updater.states[key.parameter]))[key.part].reshape(stored.shape)


def iter_arrays(state: Any) -> Iterator[Any]:
    """Yield the arrays of what an optimizer remembers of a parameter, in order."""
    if isinstance(state, mx.nd.NDArray):
        yield state
    elif isinstance(state, list | tuple):
        for part in state:
            yield from iter_arrays(part)


def read_counts(optimizer: Any, index: int, updates: int = 1) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Return how often an optimizer updated a parameter, and its own numbers, as the store carries them exactly.

    Args:
        optimizer: Any.
        index: Number of the parameter.
        updates: What each update counts for: of a rank's steps each is one of every rank.
    """
    counts = optimizer._all_index_update_counts.get(0, {})
    numbers = [counts.get(index, 0) * updates, *(getattr(optimizer, name) for name in list_numbers(optimizer))]
    return np.array(numbers, dtype=np.float64).view(np.uint16).astype(np.float32)


def write_counts(optimizer: Any, index: int, parts: np.ndarray[Any, Any], updates: int = 1) -> None:
    """Set what `read_counts` returned, `updates` of which count for one."""
    count, *numbers = parts.astype(np.uint16).view(np.float64)
    steps = int(count) // updates
    optimizer._all_index_update_counts.setdefault(0, {})[index] = steps
    optimizer.num_update = max(optimizer.num_update, steps)
    for name, value in zip(list_numbers(optimizer), numbers, strict=True):
        setattr(optimizer, name, float(value))
