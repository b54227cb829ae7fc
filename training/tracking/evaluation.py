"""Adds metrics to a run after its training, for whoever has the run's reference and a connection."""

from __future__ import annotations

import time
from collections.abc import Mapping

from training.run.job import TrackingRef
from training.tracking.apply import StoreFactory, log_evaluation_points
from training.tracking.naming import evaluation_metrics
from training.tracking.replay import connect_store


def log_metrics(
    ref: TrackingRef, metrics: Mapping[str, float], step: int | None = None, *, make_store: StoreFactory = connect_store
) -> None:
    """Add the metrics of an evaluation to the run of `ref` as `eval_…`; the same values are not added twice.

    Args:
        ref: The run; its status stays.
        metrics: Name, such as `accuracy`, to value.
        step: Last step of the training; by default as the run's metric `epoch` has it.
        make_store: Connects to a tracking address.

    Raises:
        StoreAwayError: The server is away.
        StoreRefusedError: The server does not take them.
    """
    store = make_store(ref.tracking_uri)
    log_evaluation_points(store, ref.run_id, evaluation_metrics(metrics), step, round(time.time() * 1000))
