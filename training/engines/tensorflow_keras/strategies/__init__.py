"""One file per strategy, all with the interface of `strategy.py`."""

from __future__ import annotations

import importlib

from training.engines.tensorflow_keras.strategies.strategy import Strategy
from training.errors import PreflightError
from training.run.rank import RankContext

#: Strategy to its module and class. Imported when chosen: Horovod's library is there for one of them alone.
_BUILT = {
    "single": ("single", "Single"),
    "mirrored": ("mirrored", "Mirrored"),
    "multi_worker_mirrored": ("multi_worker_mirrored", "MultiWorkerMirrored"),
    "parameter_server": ("parameter_server", "ParameterServer"),
    "central_storage": ("central_storage", "CentralStorage"),
    "tpu": ("tpu", "TPU"),
    "pipeline": ("pipeline", "Pipeline"),
    "horovod": ("horovod_allreduce", "Horovod"),
}


def start_strategy(name: str, ctx: RankContext) -> Strategy:
    """Return the strategy called `name`, once every rank has joined.

    Raises:
        PreflightError: The strategy is not built, or its devices are not there.
    """
    if name not in _BUILT:
        raise PreflightError(f"train.strategy must be one of {', '.join(_BUILT)} for now. Received: {name}.")
    module, class_name = _BUILT[name]
    strategy: Strategy = getattr(importlib.import_module(f"{__name__}.{module}"), class_name)(ctx)
    return strategy
