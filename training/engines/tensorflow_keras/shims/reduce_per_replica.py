"""Lets Keras 3's `fit` report a step under MultiWorkerMirroredStrategy.

`keras.src.backend.tensorflow.trainer.reduce_per_replica` calls `strategy.reduce("MEAN", value, axis=0)` on the logs
of a step. They are scalars, which have no axis 0, so that `fit` ends with "ValueError: Invalid reduction dimension
0 for input with 0 dimensions". Our training step (`observed_step.py`) hands out logs that are already reduced over
all replicas, so that handing them on is right. Upstream: https://github.com/keras-team/keras/issues/20585
"""

from __future__ import annotations

from typing import Any

from keras.src.backend.tensorflow import trainer


def hand_back_reduced_logs() -> None:
    """Replace `reduce_per_replica` in this process, for multi-worker strategies only."""
    original = trainer.reduce_per_replica
    if getattr(original, "is_shim", False):
        return

    def reduce_per_replica(values: Any, strategy: Any, reduction: str) -> Any:
        if trainer._collective_all_reduce_multi_worker(strategy) and reduction in ("auto", "mean"):
            return values
        return original(values, strategy, reduction)

    reduce_per_replica.is_shim = True  # type: ignore[attr-defined]
    trainer.reduce_per_replica = reduce_per_replica
