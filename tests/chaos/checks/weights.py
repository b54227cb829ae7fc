"""Are the weights those of the undisturbed run, and does the saved model, loaded, do what that run's does?"""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.chaos.drawing import TOTAL_STEPS
from tests.chaos.site import Site, read_evaluation
from tests.chaos.watched_run import WatchedRun
from training.checkpoints.store import find_step

TOLERANCE = 1e-5


def measure_difference(site: Site, run: WatchedRun) -> float:
    """Return the largest difference of any weight, or of the optimizer's state, after the last step.

    Raises:
        AssertionError: There is no whole checkpoint of the last step, or it has other tensors.
    """
    last = find_step(run.folder.checkpoints, TOTAL_STEPS, lambda line: None)
    assert last is not None, f"there must be a whole checkpoint of step {TOTAL_STEPS}"
    ours: dict[str, Any] = dict(last.read())
    theirs: dict[str, Any] = site.weights()
    assert ours.keys() == theirs.keys(), "checkpoints must have the same tensors"
    return max(float(np.max(np.abs(ours[name] - theirs[name]), initial=0.0)) for name in ours)


def check_evaluation(site: Site, run: WatchedRun) -> list[str]:
    """Check what `evaluate` found, which loads the saved model in a process of its own."""
    ours, theirs = read_evaluation(run.folder.job("evaluate")), site.evaluation()
    close = ours.keys() == theirs.keys() and all(abs(ours[name] - theirs[name]) <= TOLERANCE for name in ours)
    return [] if close and ours else [f"the saved model must be evaluated as {theirs}. Received: {ours}"]
