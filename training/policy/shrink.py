"""With how many ranks a gang goes on after it lost one."""

from __future__ import annotations

from collections.abc import Sequence

from training.policy.failure import Cause

#: Failures after which the rank, its slot or its host may be gone for good.
LOSSES = frozenset({Cause.SIGNAL, Cause.LOST_PEER, Cause.STALL, Cause.LATE, Cause.START_DEADLINE})


def choose_world_size(cause: Cause, lost: int | None, world_size: int, smaller: Sequence[int]) -> int:
    """Return the number of ranks to restart with.

    Args:
        cause: Why the attempt failed.
        lost: The rank that failed; None where it was the gang as a whole.
        world_size: Ranks of the attempt.
        smaller: Sizes that the gang may shrink to.

    >>> choose_world_size(Cause.SIGNAL, 1, 4, [2, 1])
    2
    >>> choose_world_size(Cause.USER_CODE, 1, 4, [2, 1])
    4
    """
    if cause not in LOSSES or lost is None:
        return world_size
    return max((size for size in smaller if size < world_size), default=world_size)
