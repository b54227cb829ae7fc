"""Finds the first failure of a gang, from what is known of its ranks. Pure: `now` and the states are given."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from training.plan.job import LimitsPlan
from training.policy.failure import Cause
from training.policy.stall import choose_stalled
from training.run.verdict import Verdict, judge_early_exit, judge_late, judge_rank, judge_stall, judge_start
from training.run.watch import RankWatch

#: When the first failure is that of a rank that lost a peer, the peer itself has so long to be seen failing.
SETTLE_S = 1.0


def find_failure(ranks: Sequence[RankWatch], now: float, is_stopped: Callable[[int], bool]) -> Verdict | None:
    """Return the verdict on the first rank that failed; one that lost a peer gives way to the peer (K14).

    A peer that the kernel holds stopped never fails by itself, but frameworks give it up after some seconds.
    """
    failed = [(_is_echo(rank), rank.failed_at, rank) for rank in ranks if rank.failed_at is not None]
    if not failed:
        return None
    is_echo, at, first = min(failed, key=lambda entry: (entry[0], entry[1], entry[2].process.rank))
    others = [rank for rank in ranks if rank.is_running and rank.failed_at is None]
    if is_echo and others and now < at + SETTLE_S:
        return None
    stopped = next((rank for rank in others if is_stopped(rank.process.rank)), None) if is_echo else None
    if stopped is not None:
        return judge_stall(stopped, silent_s=now - stopped.sign_at, stopped=True, at=now)
    if first.left_early and not first.ready and len(ranks) > 1:
        return judge_early_exit(first, ranks, at)
    return judge_rank(first, at)


def find_missing(ranks: Sequence[RankWatch], limits: LimitsPlan, started_at: float, now: float) -> Verdict | None:
    """Return the verdict on a gang that is not complete and never will be, or is not in time (K02)."""
    missing = [rank for rank in ranks if not rank.ready]
    left = [rank for rank in missing if rank.exit_code == 0]
    if left and len(ranks) > 1:
        return judge_early_exit(left[0], ranks, now)
    if missing and now - started_at >= limits.start_timeout_s:
        return judge_start(ranks, limits.start_timeout_s, now)
    return None


def find_stalled(
    ranks: Sequence[RankWatch], limits: LimitsPlan, since: float, now: float, is_stopped: Callable[[int], bool]
) -> Verdict | None:
    """Return the verdict on the rank that holds up a complete gang; silence counts from `since` at the earliest.

    Services have nothing to say: one is to blame only where it is stopped and a rank is silent.
    """
    workers = [rank for rank in ranks if not rank.process.service]
    last = max(rank.sign_at for rank in workers)
    silent = [
        rank
        for rank in workers
        if rank.is_running
        and now - rank.sign_at >= limits.stall_timeout_s
        # Scripts print where they like, most on one rank: that one speaks for the others.
        and (rank.process.tells_steps or now - last >= limits.stall_timeout_s or is_stopped(rank.process.rank))
    ]
    if silent:
        silent += [rank for rank in ranks if rank.process.service and rank.is_running and is_stopped(rank.process.rank)]
    signs = [rank.sign(since, stopped=is_stopped(rank.process.rank)) for rank in silent]
    found = choose_stalled(signs, now, limits.stall_timeout_s)
    if found is None:
        return None
    blamed = next(rank for rank in silent if rank.process.rank == found.rank)
    return judge_stall(blamed, silent_s=now - found.at, stopped=found.stopped, at=now)


def find_late(ranks: Sequence[RankWatch], limits: LimitsPlan, first_done_at: float, now: float) -> Verdict | None:
    """Return the verdict on ranks that go on long after the first one ended well (K20)."""
    running = [rank for rank in ranks if rank.is_running]
    if running and now - first_done_at >= limits.finish_grace_s:
        return judge_late(running, limits.finish_grace_s, now)
    return None


def _is_echo(rank: RankWatch) -> bool:
    return rank.classify().cause is Cause.LOST_PEER
