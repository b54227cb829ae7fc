"""What a server of `dist_async` does with the arrays that are pushed to it: updates, sums, and states in and out."""

from __future__ import annotations

from typing import Any

import mxnet as mx
import numpy as np

from training.engines.mxnet_gluon.optimizer_memory import (
    check_rest,
    describe_rest,
    iter_leaves,
    list_numbers,
    read_leaf,
    read_numbers,
    replace_leaves,
    write_leaf,
    write_numbers,
)
from training.engines.mxnet_gluon.store_keys import COUNTS, WEIGHT, StateKey, is_sum, parse_state_key


class StoreUpdates:
    """The optimizer of one server, with what it remembers of its parameters.

    Args:
        servers: Number of servers, by which states are placed.
    """

    def __init__(self, servers: int) -> None:
        self._servers = servers
        self._updater: Any = None
        self._begun: dict[str, str] = {}
        self._weights: dict[int, Any] = {}

    def set_optimizer(self, optimizer: Any) -> None:
        """Take an optimizer that has updated nothing yet."""
        self._updater = mx.optimizer.get_updater(optimizer)
        self._begun = describe_rest(optimizer, {})

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
                key.parameter, self._weights[key.parameter]
            )
            self._updater.states_synced[key.parameter] = True
        states[key.parameter] = unpack_part(states[key.parameter], key.part, received)

    def _give(self, key: StateKey, stored: Any) -> Any:
        optimizer = self._updater.optimizer
        if key.part == COUNTS:
            check_rest(optimizer, {}, self._begun)
            return mx.nd.array(read_counts(optimizer, key.parameter))
        return pack_parts(self._updater.states[key.parameter])[key.part].reshape(stored.shape)


def pack_parts(state: Any) -> list[Any]:
    """Return what an optimizer remembers of a parameter as arrays of 32-bit floats: of other numbers, their bytes."""
    return [leaf if _is_carried(leaf) else mx.nd.array(_read_bytes(leaf)) for _, leaf in iter_leaves(state)]


def unpack_part(state: Any, part: int, received: Any) -> Any:
    """Return a state with a part that was packed in the place of its own."""
    leaves = [leaf for _, leaf in iter_leaves(state)]
    leaf = leaves[part]
    if _is_carried(leaf):
        leaf[:] = received.reshape(leaf.shape)
        return state
    before = read_leaf(leaf)
    sent = received.asnumpy().astype(np.uint8).tobytes()
    leaves[part] = write_leaf(leaf, np.frombuffer(sent, dtype=before.dtype).reshape(before.shape))
    return replace_leaves(state, iter(leaves))


def _is_carried(leaf: Any) -> bool:
    """Whether the store takes a part as it is."""
    return isinstance(leaf, mx.nd.NDArray) and leaf.dtype == np.float32


def _read_bytes(leaf: Any) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.frombuffer(read_leaf(leaf).tobytes(), dtype=np.uint8).astype(np.float32)


def read_counts(optimizer: Any, index: int, updates: int = 1) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Return how often an optimizer updated a parameter, and its own numbers, as the store carries them exactly.

    Args:
        optimizer: Any.
        index: Number of the parameter.
        updates: What each update counts for: of a rank's steps each is one of every rank.
    """
    counts = optimizer._all_index_update_counts.get(0, {})
    numbers = [np.array([counts.get(index, 0) * updates]), *read_numbers(optimizer).values()]
    return np.concatenate(numbers, dtype=np.float64).view(np.uint16).astype(np.float32)


def write_counts(optimizer: Any, index: int, parts: np.ndarray[Any, Any], updates: int = 1) -> None:
    """Set what `read_counts` returned, `updates` of which count for one."""
    count, *numbers = parts.astype(np.uint16).view(np.float64)
    steps = int(count) // updates
    optimizer._all_index_update_counts.setdefault(0, {})[index] = steps
    optimizer.num_update = max(optimizer.num_update, steps)
    write_numbers(optimizer, dict(zip(list_numbers(optimizer), np.reshape(numbers, (-1, 2)), strict=True)))
