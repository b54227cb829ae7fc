"""One file per strategy, all with the interface of `strategy.py`."""

from __future__ import annotations

from collections.abc import Callable

from training.engines.tensorflow_keras.strategies.multi_worker_mirrored import MultiWorkerMirrored
from training.engines.tensorflow_keras.strategies.single import Single
from training.engines.tensorflow_keras.strategies.strategy import Strategy
from training.errors import PreflightError
from training.run.rank import RankContext

_BUILT: dict[str, Callable[[RankContext], Strategy]] = {
    "single": Single,
    "multi_worker_mirrored": MultiWorkerMirrored,
}


def start_strategy(name: str, ctx: RankContext) -> Strategy:
    """Return the strategy called `name`, once every rank has joined.

    Raises:
        PreflightError: The strategy is not built.
    """
    if name not in _BUILT:
        raise PreflightError(f"train.strategy must be one of {', '.join(_BUILT)} for now. Received: {name}.")
    return _BUILT[name](ctx)
