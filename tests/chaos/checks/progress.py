"""Was each step trained once, but for those since the last checkpoint, and is the last good checkpoint whole?"""

from __future__ import annotations

import itertools

from tests.chaos.drawing import EVERY_STEPS, TOTAL_STEPS
from tests.chaos.watched_run import WatchedRun
from training.checkpoints.store import find_newest
from training.run.event import Checkpoint, Event, Ready, Step

#: The chief tells at most 20 steps a second: the first one after a restart may be some steps after its checkpoint.
_UNTOLD = 3


def check_steps(events: list[Event], *, steps_again: bool, succeeded: bool) -> list[str]:
    """Check the steps that the chief told of, attempt by attempt.

    Args:
        events: All events, in order.
        steps_again: Whether checkpoints were damaged, so that more than the last steps had to be trained again.
        succeeded: Whether the training had to come to its end.
    """
    problems = []
    newest = done = 0
    for attempt in _split_attempts(events):
        steps = [event.step for event in attempt if isinstance(event, Step)]
        if any(later <= earlier for earlier, later in itertools.pairwise(steps)):
            problems.append(f"steps of an attempt must rise. Received: {steps}")
        if steps and not steps_again and not newest < steps[0] <= newest + EVERY_STEPS + _UNTOLD:
            problems.append(f"after the checkpoint of step {newest} no step of before may be trained again, and none "
                            f"left out. Received: step {steps[0]} first")  # fmt: skip
        newest = max([newest, *(event.step for event in attempt if isinstance(event, Checkpoint))])
        done = max([done, *steps])
    if succeeded and done != TOTAL_STEPS:
        problems.append(f"the training must end with step {TOTAL_STEPS}. Received: {done}")
    return problems


def check_checkpoints(run: WatchedRun) -> list[str]:
    """Check that the last checkpoint that was told of is whole."""
    told = run.last_checkpoint()
    newest = find_newest(run.folder.checkpoints, lambda line: None)
    step = newest.meta.step if newest is not None else 0
    return [] if step >= told else [f"the checkpoint of step {told} must be whole. Received: newest is of step {step}"]


def _split_attempts(events: list[Event]) -> list[list[Event]]:
    """Return the chief's events by attempt: each begins with its `ready`."""
    attempts: list[list[Event]] = []
    for event in events:
        if event.rank != 0:
            continue
        if isinstance(event, Ready):
            attempts.append([])
        if attempts:
            attempts[-1].append(event)
    return attempts
