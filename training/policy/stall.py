"""Who is stalled: when one rank hangs, all others soon wait for it, so that silence alone does not tell the culprit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RankSign:
    """The last sign of life of a running rank.

    Attributes:
        rank: Number of the rank.
        at: When it last printed or told anything, in seconds of the same clock as `now`.
        step: Its last step, 0 before the first.
        stopped: Whether the kernel holds it stopped (SIGSTOP, a debugger).
    """

    rank: int
    at: float
    step: int = 0
    stopped: bool = False


def choose_stalled(signs: Sequence[RankSign], now: float, timeout_s: float) -> RankSign | None:
    """Return the rank to blame for a stall, or None while every rank gave a sign in the last `timeout_s` seconds.

    Of several silent ranks a stopped one is to blame, else the one behind in steps, else the one silent longest.

    >>> choose_stalled([RankSign(rank=0, at=1.0, step=4), RankSign(rank=1, at=2.0, step=3)], 62.0, 60.0).rank
    1
    """
    silent = [sign for sign in signs if now - sign.at >= timeout_s]
    return min(silent, key=lambda sign: (not sign.stopped, sign.step, sign.at, sign.rank), default=None)
