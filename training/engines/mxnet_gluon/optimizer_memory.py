"""What an optimizer remembers, as arrays, and back: what its `create_state` returned, and numbers of its own."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

import mxnet as mx
import numpy as np
from numpy.typing import NDArray

from training.errors import SpecError, spec_error

Array = NDArray[Any]
#: Types of numbers. As an array, a number is the place of its type and its value, so that None may have become one.
_TYPES: tuple[type, ...] = (type(None), bool, int, float)
_TYPES += (np.bool_, np.int32, np.int64, np.float16, np.float32, np.float64)
_LARGEST = 2**53  # of the whole numbers that 64-bit floats hold
#: What every optimizer has, is set by Ganger or by the trainer, and is not the optimizer's own.
_COMMON = frozenset(vars(mx.optimizer.Optimizer())) - {"lr", "wd", "clip_gradient"}
#: Of MXNet's LBSGD, which needs it for a `batch_scale` that is refused.
_NEVER_READ = frozenset({"cumgrads"})


def iter_leaves(state: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield arrays and numbers of a state in order, with `name` and their places in lists and tuples."""
    if type(state) in (list, tuple):
        for number, part in enumerate(state):
            yield from iter_leaves(part, f"{name}.{number}")
    elif state is not None:
        yield name, state


def replace_leaves(state: Any, leaves: Iterator[Any]) -> Any:
    """Return a state with other arrays and numbers.

    >>> replace_leaves((1, [None, 2]), iter("ab"))
    ('a', [None, 'b'])
    """
    if type(state) in (list, tuple):
        return type(state)(replace_leaves(part, leaves) for part in state)
    return None if state is None else next(leaves)


def check_state(optimizer: Any, state: Any) -> None:
    """Check that a state can be saved.

    Raises:
        SpecError: It holds something else than arrays and numbers (K38).
    """
    for _, leaf in iter_leaves(state):
        if not (isinstance(leaf, mx.nd.NDArray) or _is_array(leaf) or _is_number(leaf)):
            raise spec_error(
                "model.entrypoint",
                f"{type(optimizer).__name__}.create_state must return arrays and numbers, None, or lists and tuples of "
                f"them, so that they can be saved. Received: a {type(leaf).__name__}.",
            )


def read_leaf(leaf: Any) -> Array:
    """Return an array or a number as an array."""
    if isinstance(leaf, mx.nd.NDArray):
        array: Array = leaf.asnumpy()
        return array
    return leaf if isinstance(leaf, np.ndarray) else _read_number(leaf)


def write_leaf(leaf: Any, array: Array) -> Any:
    """Return what `read_leaf` made an array of; an array of MXNet stays the same one."""
    if isinstance(leaf, mx.nd.NDArray):
        leaf[:] = mx.nd.array(array, ctx=leaf.context, dtype=array.dtype)
        return leaf
    return np.array(array) if isinstance(leaf, np.ndarray) else _write_number(array)


def list_numbers(optimizer: Any) -> list[str]:
    """Return the names of an optimizer's own numbers: settings, and what it counts in, such as Nadam's `m_schedule`."""
    return sorted(name for name, value in vars(optimizer).items() if name not in _COMMON and _is_number(value))


def read_numbers(optimizer: Any) -> dict[str, Array]:
    """Return the numbers of an optimizer by name."""
    return {name: _read_number(getattr(optimizer, name)) for name in list_numbers(optimizer)}


def write_numbers(optimizer: Any, arrays: Mapping[str, Array]) -> None:
    """Set the numbers of an optimizer."""
    for name, array in arrays.items():
        setattr(optimizer, name, _write_number(array))


def describe_rest(optimizer: Any, states: Mapping[int, Any]) -> dict[str, str]:
    """Return what of an optimizer cannot be saved, and so must not change: all but the values of numbers and arrays."""
    own = {name: value for name, value in vars(optimizer).items() if name not in _COMMON | _NEVER_READ}
    rest = {name: "a number" if _is_number(value) else _describe(value) for name, value in own.items()}
    return rest | {f"the state of parameter {index}": str(len(list(iter_leaves(states[index])))) for index in states}


def check_rest(optimizer: Any, states: Mapping[int, Any], begun: Mapping[str, str]) -> None:
    """Check that an optimizer has changed nothing that cannot be saved.

    Raises:
        SpecError: It has, since it was as `describe_rest` said.
    """
    now = describe_rest(optimizer, states)
    changed = sorted(name for name in now.keys() | begun.keys() if now.get(name) != begun.get(name))
    if changed:
        raise _refuse_change(optimizer, changed[0])
    for state in states.values():
        check_state(optimizer, state)


def _refuse_change(optimizer: Any, name: str) -> SpecError:
    what = f"{name}, a {type(getattr(optimizer, name)).__name__}" if hasattr(optimizer, name) else name
    return spec_error(
        "model.entrypoint",
        f"{type(optimizer).__name__} must change nothing but weights, the arrays and numbers that its create_state "
        f"returned, and numbers that it has had from the beginning, so that it can be saved. Received: {what}, which "
        "is another one than at first.",
    )


def _is_array(value: object) -> bool:
    return (
        isinstance(value, np.ndarray) and value.dtype.kind in "biuf" and value.dtype.itemsize <= np.float64(0).itemsize
    )


def _is_number(value: Any) -> bool:
    return type(value) in _TYPES and (not isinstance(value, int | np.int64) or abs(int(value)) <= _LARGEST)


def _read_number(value: Any) -> Array:
    return np.array([_TYPES.index(type(value)), value or 0], dtype=np.float64)


def _write_number(array: Array) -> Any:
    kind = _TYPES[int(array[0])]
    return None if array[0] == 0 else kind(array[1])


def _describe(value: Any) -> str:
    """Return a text that differs where a container of numbers, texts and arrays does; of anything else, its type."""
    if isinstance(value, mx.nd.NDArray | np.ndarray):
        return hashlib.sha256(np.ascontiguousarray(read_leaf(value)).tobytes()).hexdigest()
    if isinstance(value, dict):
        return _describe(list(value.items()))
    if isinstance(value, list | tuple | set | frozenset):
        return f"[{', '.join(map(_describe, value))}]"
    return repr(value) if isinstance(value, str | int | float | None) else type(value).__name__
