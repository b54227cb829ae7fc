"""Which repairs of Keras, Horovod and MXNet a script gets, by strategy: made when it imports what they repair.

A script that imports none of it, or another Keras than Keras 3, meets none.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from functools import partial
from types import ModuleType
from typing import Any, Final

from training.run.rank import RankContext
from training.script.after_import import Action

_SHIMS = "training.engines"
#: What MXNet's store needs, whether its workers wait for one another or not.
_STORE = {"mxnet.kvstore.kvstore": ("gluon_scripts.store_at_exit", "end_stores_at_exit")}
#: Strategy to the modules that are repaired, each with the module and the function that do it.
_REPAIRS: Final[dict[str, dict[str, tuple[str, str]]]] = {
    "multi_worker_mirrored": {
        "keras.src.backend.tensorflow.trainer": ("keras_scripts.multi_worker_fit", "repair_fit"),
        "tensorflow.python.distribute.collective_all_reduce_strategy": (
            "keras_scripts.preemption_notice",
            "keep_sigterm",
        ),
    },
    "horovod": {
        "horovod._keras": ("keras_scripts.horovod_keras", "repair_optimizer"),
        "horovod._keras.callbacks": ("keras_scripts.horovod_keras", "repair_callbacks"),
        "horovod.tensorflow": ("keras_scripts.horovod_variables", "repair_variables"),
    },
    "dist_sync": _STORE,
    "dist_async": _STORE,
}


def find_repairs(ctx: RankContext) -> Mapping[str, Action]:
    """Return module to what must follow its import."""
    found = _REPAIRS.get(ctx.payload["strategy"], {})
    return {name: partial(_repair, shim=shim, function=function) for name, (shim, function) in found.items()}


def _repair(module: ModuleType, *, shim: str, function: str) -> None:
    repair: Any = getattr(importlib.import_module(f"{_SHIMS}.{shim}"), function)
    repair(module)
