"""Builds a model from an ordinary batch, and keeps Keras 3's `fit` from building it from a distributed one.

`fit` calls `_maybe_symbolic_build`, which takes a batch from the distributed dataset and, under
MultiWorkerMirroredStrategy, ends with "ValueError: Attempt to convert a value (PerReplica...) with an unsupported
type".
Building in the strategy's scope beforehand makes the call unnecessary.
Upstream: https://github.com/keras-team/keras/issues/20585
"""

from __future__ import annotations

from typing import Any


def build_from_batch(model: Any, batch: tuple[Any, ...]) -> None:
    """Create all variables of a compiled model: weights, optimizer, metrics. Call it in the strategy's scope.

    Args:
        model: A compiled `keras.Model`.
        batch: Features, labels and perhaps weights of a few rows.
    """
    model._symbolic_build(data_batch=batch)
    model._maybe_symbolic_build = _build_nothing


def _build_nothing(*_: Any, **__: Any) -> None:
    """Stand in for `_maybe_symbolic_build`: all is built."""
