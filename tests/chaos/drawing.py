"""Draws faults from a seed: the same ones on every machine. Pure.

A deck of 40 cards, each with a kind on it, is shuffled; a longer drawing shuffles it again. So every kind occurs in 40,
and any few differ in kind. Moments, ranks and places are drawn per card.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.chaos.fault import Fault, Kind, Moment, Stage

#: Of the training of `user_files/chaos.yaml`: 1438 rows in steps of 64.
PER_EPOCH, EPOCHS, EVERY_STEPS = 22, 3, 5
TOTAL_STEPS = PER_EPOCH * EPOCHS
#: Faults in mid-training lie in these steps: a checkpoint is there before, and there is time before the end.
FIRST, LAST = 12, 48
#: A server that comes back takes long to answer, and must do so before it is needed for the registration.
SERVER_LAST = 18

CARDS: dict[Kind, int] = {
    Kind.RANK_KILLED: 5,
    Kind.RANK_KILLED_AGAIN: 2,
    Kind.RANK_KILLED_FOR_GOOD: 2,
    Kind.RANK_CRASHED: 2,
    Kind.RANK_STOPPED: 2,
    Kind.RANK_EXITS: 2,
    Kind.RANK_RAISES: 1,
    Kind.RANK_OUT_OF_MEMORY: 1,
    Kind.LOSS_NAN: 2,
    Kind.SUPERVISOR_KILLED: 2,
    Kind.TASK_KILLED: 2,
    Kind.TASK_AND_RANK_KILLED: 1,
    Kind.TASK_ABANDONED: 1,
    Kind.AIRFLOW_TASK_KILLED: 2,
    Kind.INTERRUPTED: 2,
    Kind.STOPPED: 1,
    Kind.SERVER_AWAY: 2,
    Kind.SERVER_AWAY_RANK_KILLED: 1,
    Kind.SERVER_GONE: 1,
    Kind.CHECKPOINT_TRUNCATED: 1,
    Kind.CHECKPOINT_FLIPPED: 1,
    Kind.CHECKPOINTS_ALL_DAMAGED: 1,
    Kind.DISK_FULL: 2,
    Kind.DISK_FULL_FOR_A_WHILE: 1,
}
#: Kinds that can come at any stage; the others come at a step.
AT_ANY_STAGE = frozenset({Kind.RANK_KILLED, Kind.RANK_KILLED_AGAIN, Kind.RANK_CRASHED, Kind.SUPERVISOR_KILLED})
_SERVERS = frozenset({Kind.SERVER_AWAY, Kind.SERVER_AWAY_RANK_KILLED})
_CHECKPOINTS = frozenset({Kind.CHECKPOINT_TRUNCATED, Kind.CHECKPOINT_FLIPPED, Kind.CHECKPOINTS_ALL_DAMAGED})


def draw_faults(seed: int, count: int) -> list[Fault]:
    """Return `count` faults, a function of `seed` alone; a shorter drawing is the beginning of a longer one."""
    randoms = random.Random(seed)
    kinds: list[Kind] = []
    while len(kinds) < count:
        deck = [kind for kind, copies in CARDS.items() for _ in range(copies)]
        randoms.shuffle(deck)
        kinds += deck
    # A generator of its own for each: what one kind draws must not change the faults after it.
    return [_draw(number, kind, random.Random(f"{seed}/{number}")) for number, kind in enumerate(kinds[:count], 1)]


def _draw(number: int, kind: Kind, randoms: random.Random) -> Fault:
    moment = _draw_stage(randoms) if kind in AT_ANY_STAGE else Moment(Stage.STEP, randoms.randint(FIRST, LAST))
    if kind in _CHECKPOINTS:
        moment = Moment(Stage.CHECKPOINT, _draw_checkpoint(randoms))
    if kind in _SERVERS:
        moment = Moment(Stage.STEP, randoms.randint(FIRST, SERVER_LAST))
    return Fault(
        number=number,
        kind=kind,
        rank=randoms.randrange(2),
        moment=moment,
        second=_SECOND[kind](moment, randoms) if kind in _SECOND else None,
        place=round(randoms.uniform(0.05, 0.95), 2),
    )


def _draw_stage(randoms: random.Random) -> Moment:
    stage = randoms.choice(list(Stage))
    if stage is Stage.STEP:
        return Moment(stage, randoms.randint(FIRST, LAST))
    return Moment(stage, _draw_checkpoint(randoms) if stage is Stage.CHECKPOINT else 0)


def _draw_checkpoint(randoms: random.Random) -> int:
    """Return a step with a checkpoint, at least the third."""
    steps = [step for step in range(FIRST, LAST) if step % EVERY_STEPS == 0 or step % PER_EPOCH == 0]
    return randoms.choice(steps)


def _next_attempt(first: Moment, randoms: random.Random) -> Moment:
    """Return a moment in the attempt after the one that `first` ends."""
    if first.stage is Stage.SAVING or randoms.random() < 0.5:
        return Moment(Stage.STARTING, attempt=2)
    return Moment(Stage.STEP, max(first.step, FIRST) + randoms.randint(4, 12), attempt=2)


def _some_steps_later(first: Moment, randoms: random.Random) -> Moment:
    return Moment(Stage.STEP, first.step + randoms.randint(2, 6))


def _at_restart(first: Moment, randoms: random.Random) -> Moment:
    return Moment(Stage.STARTING, attempt=2)


_SECOND: dict[Kind, Callable[[Moment, random.Random], Moment]] = {
    Kind.RANK_KILLED_AGAIN: _next_attempt,
    Kind.TASK_AND_RANK_KILLED: _some_steps_later,
    Kind.SERVER_AWAY: _some_steps_later,
    Kind.SERVER_AWAY_RANK_KILLED: _some_steps_later,
    Kind.DISK_FULL_FOR_A_WHILE: _at_restart,
}
