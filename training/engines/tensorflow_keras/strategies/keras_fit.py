"""How synchronous strategies train: by Keras' own `fit`, whose steps are observed."""

from __future__ import annotations

from typing import Any

from training.engines.tensorflow_keras.observed_step import observe_steps
from training.engines.tensorflow_keras.strategies.strategy import MakeDataset, SynchronousStrategy


class KerasFit:
    """What a strategy inherits that `fit` can train under."""

    updates_per_step = 1

    def fit(self: SynchronousStrategy, model: Any, make_dataset: MakeDataset, callbacks: Any, **span: int) -> None:
        """Train by `model.fit`; `span` is as in `Strategy.fit`."""
        with observe_steps(model, self):
            model.fit(self.distribute(make_dataset), callbacks=callbacks, shuffle=False, verbose=0, **span)
