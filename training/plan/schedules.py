"""In which order each stage of a pipeline does its work: GPipe and 1F1B, as data.

A stage does two pieces of work for each micro-batch: forward, and backward. Under `gpipe`
(https://arxiv.org/abs/1811.06965) all forwards come first; under `1f1b` (PipeDream-Flush,
https://arxiv.org/abs/2006.09503) a stage goes backward as soon as it can, so that it keeps the activations of few
micro-batches at a time. Both go through the micro-batches in their order in both directions: gradients are added up in
the same order, and the weights come out the same to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

Schedule = Literal["1f1b", "gpipe"]
Phase = Literal["forward", "backward"]


@dataclass(frozen=True, slots=True, order=True)
class Work:
    """What one stage does in one direction for one micro-batch.

    Attributes:
        phase: The direction.
        stage: From 0.
        micro_batch: From 0.
    """

    phase: Phase
    stage: int
    micro_batch: int


#: The works of one stage, in their order.
StageOrder = tuple[Work, ...]


def order_stage(schedule: Schedule, stage: int, stages: int, micro_batches: int) -> StageOrder:
    """Return the order in which `stage` does its work.

    >>> [f"{work.phase[0]}{work.micro_batch}" for work in order_stage("1f1b", 0, 2, 3)]
    ['f0', 'f1', 'b0', 'f2', 'b1', 'b2']
    """
    ahead = micro_batches if schedule == "gpipe" else min(stages - stage, micro_batches)
    order = [Work("forward", stage, micro_batch) for micro_batch in range(ahead)]
    for micro_batch in range(micro_batches):
        order.append(Work("backward", stage, micro_batch))
        if ahead + micro_batch < micro_batches:
            order.append(Work("forward", stage, ahead + micro_batch))
    return tuple(order)


def order_stages(schedule: Schedule, stages: int, micro_batches: int) -> tuple[StageOrder, ...]:
    """Return the orders of all stages."""
    return tuple(order_stage(schedule, stage, stages, micro_batches) for stage in range(stages))


def list_needs(work: Work, stages: int) -> tuple[Work, ...]:
    """Return the works whose results `work` takes: a pipeline of `stages` stages has no other dependencies."""
    own, micro_batch = work.stage, work.micro_batch
    if work.phase == "forward":
        return (Work("forward", own - 1, micro_batch),) if own else ()
    forward = Work("forward", own, micro_batch)
    return (forward,) if own == stages - 1 else (forward, Work("backward", own + 1, micro_batch))


def unroll(orders: Sequence[StageOrder]) -> Iterator[Work]:
    """Yield all works, each after what it needs and after what its stage does before it.

    Raises:
        ValueError: Stages wait for one another for ever.
    """
    done: set[Work] = set()
    position = [0] * len(orders)
    while len(done) < sum(map(len, orders)):
        before = len(done)
        for stage, order in enumerate(orders):
            while position[stage] < len(order) and done.issuperset(list_needs(order[position[stage]], len(orders))):
                yield order[position[stage]]
                done.add(order[position[stage]])
                position[stage] += 1
        if len(done) == before:
            raise ValueError("the orders of the stages must not wait for one another in a circle")


def count_in_flight(order: StageOrder) -> int:
    """Return how many micro-batches a stage holds the activations of at most: forward done, backward not yet.

    >>> [count_in_flight(order_stage(name, 0, 2, 8)) for name in ("1f1b", "gpipe")]
    [2, 8]
    """
    most = held = 0
    for work in order:
        held += 1 if work.phase == "forward" else -1
        most = max(most, held)
    return most


def split_rows(rows: int, micro_batches: int) -> tuple[int, ...]:
    """Return the rows of each micro-batch: as equal as can be, the earlier ones larger.

    >>> split_rows(10, 4)
    (3, 3, 2, 2)
    """
    share, rest = divmod(rows, micro_batches)
    return tuple(share + (index < rest) for index in range(micro_batches))


def bubble_of(stages: int, micro_batches: int) -> float:
    """Return the share of the time in which stages of equal cost stand idle, the same for both schedules.

    >>> round(bubble_of(2, 8), 3)
    0.111
    """
    return (stages - 1) / (micro_batches + stages - 1)
