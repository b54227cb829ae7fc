"""The numbers that arrays have in MXNet's key-value store.

The store places an array by its number: what belongs to a parameter must have a number that goes to the same server.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from training.errors import spec_error

#: Numbers below are parameters.
_BLOCK: Final = 100_000
#: Numbers from here on are sums over ranks; those of parameters that the chief gives to all, and those of any numbers.
_SUMS: Final = 2_000_000_000
_LAST: Final = 2**31 - 1
_PARTS: Final = 16
#: The part that is no array of the optimizer, but how often it updated the parameter, and its own numbers.
COUNTS: Final = _PARTS - 1
#: The part that is the parameter's value.
WEIGHT: Final = _PARTS - 2


class StateKey(NamedTuple):
    """An array that an optimizer remembers on a server.

    Attributes:
        parameter: Its number.
        part: Number of the array among those of the parameter, or `COUNTS` or `WEIGHT`.
        is_write: Whether the server is to take the array, not to give it.
    """

    parameter: int
    part: int
    is_write: bool


def state_key(key: StateKey, servers: int) -> int:
    """Return the number of a state, which goes to the server of its parameter.

    >>> state_key(StateKey(7, 0, False), servers=3), parse_state_key(600_007, servers=3)
    (300007, StateKey(parameter=7, part=0, is_write=True))
    """
    return key.parameter + servers * _BLOCK * (1 + 2 * key.part + key.is_write)


def parse_state_key(number: int, servers: int) -> StateKey | None:
    """Return what the number means; None for a parameter itself."""
    code, parameter = divmod(number, servers * _BLOCK)
    return StateKey(parameter, (code - 1) // 2, bool((code - 1) % 2)) if code else None


def weight_key(number: int) -> int:
    """Return the number of a parameter that the chief gives to all."""
    return _SUMS + number


def gather_key(count: int) -> int:
    """Return the number under which `count` numbers of each rank are gathered; a power of 2."""
    return _LAST - count.bit_length()


def is_sum(number: int) -> bool:
    """Whether arrays of this number are added up."""
    return number >= _SUMS


def check_counts(parameters: int, parts: int, servers: int) -> None:
    """Check that there are numbers enough.

    Raises:
        SpecError: There are too many parameters, or the optimizer remembers too much of each.
    """
    if parameters > _BLOCK or parts > WEIGHT or servers * _BLOCK * (2 * _PARTS + 1) > _SUMS:
        raise spec_error(
            "train.strategy",
            f"dist_async takes at most {_BLOCK} parameters, {WEIGHT} arrays of an optimizer for each, and "
            f"{_SUMS // (_BLOCK * (2 * _PARTS + 1))} servers. Received: {parameters}, {parts} and {servers}.",
        )
