"""Which framework trains, and so which environment the ranks run in. Horovod serves two (ADR 9)."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from training.spec.pipeline import PipelineSpec
from training.spec.train import HorovodTrain

Framework = Literal["tensorflow", "mxnet"]


def choose_framework(imports: Collection[str]) -> Framework:
    """Return the framework of a file by the modules that it imports: MXNet where it is MXNet alone.

    >>> choose_framework({"mxnet.gluon", "numpy"}), choose_framework({"horovod.mxnet"}), choose_framework({"numpy"})
    ('mxnet', 'mxnet', 'tensorflow')
    """
    return "mxnet" if list_frameworks(imports) == {"mxnet"} else "tensorflow"


def list_frameworks(imports: Collection[str]) -> set[Framework]:
    """Return the frameworks among the modules that a file imports.

    >>> sorted(list_frameworks({"keras", "horovod.mxnet", "numpy"}))
    ['mxnet', 'tensorflow']
    """
    found: set[Framework] = set()
    for part in (name.split(".") for name in imports):
        if part[0] in ("tensorflow", "keras") or "tensorflow" in part[:2]:
            found.add("tensorflow")
        if part[0] == "mxnet" or part[:2] == ["horovod", "mxnet"]:
            found.add("mxnet")
    return found


def choose_environment(spec: PipelineSpec) -> Framework:
    """Return the name of the environment that the ranks of `spec` need, which is also that of its framework.

    It is also the engine whose code runs in the ranks: Horovod trains with that of its framework.
    """
    if isinstance(spec.train, HorovodTrain):
        return spec.train.framework or "tensorflow"
    return "mxnet" if spec.train.engine == "mxnet" else "tensorflow"
