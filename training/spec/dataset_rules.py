"""Rules for rows that `build_dataset` of the model file gives; pure, like those in `rules`, which runs them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from training.errors import Problem
from training.names import say_nearest
from training.spec.mistake import Mistake
from training.spec.pipeline import BUILD_DATASET, DataSpec

#: What `build_dataset` is called with, by name, as far as it takes them; `data.params` come on top.
DATASET_ARGUMENTS: Final = ("split", "batch_size", "seed", "shard", "shards")
#: Those that it must take, by `data.sharding`: it is called for several splits, and for a shard where it shards itself.
_NEEDED: Final = {"ganger": ("split", "batch_size"), "own": ("split", "batch_size", "shard", "shards")}


def check_pipeline_engine(source: str | None, engine: str, script: str | None) -> Mistake | None:
    """Refuse `build_dataset` where no Keras model file would be asked for it."""
    if source != BUILD_DATASET or (script is None and engine != "mxnet"):
        return None
    where = (
        "`train.script`, which reads its own rows" if script is not None else "engine `mxnet`, which reads no tf.data"
    )
    return Mistake(path=("data", "source"), message=f"must not be `{BUILD_DATASET}` with {where}.")


def check_pipeline_label(source: str | None, label: str | None) -> Mistake | None:
    """Refuse a label column where there are no columns."""
    if source != BUILD_DATASET or label is None:
        return None
    message = f"must not be given with source `{BUILD_DATASET}`, which gives labels itself. Received: {label}."
    return Mistake(path=("data", "label"), message=message, remedy="Leave it out.")


def check_sharding(source: str | None, sharding: str | None) -> Mistake | None:
    """Refuse shards of somebody's own where Ganger makes the batches."""
    if sharding != "own" or source in (None, BUILD_DATASET):
        return None
    message = f"must be `ganger` unless `data.source` is `{BUILD_DATASET}`: it is Ganger that cuts prepared rows."
    return Mistake(path=("data", "sharding"), message=message, remedy="Leave it out.")


def check_steps_per_epoch(source: str | None, strategy: str, steps: int | None) -> Mistake | None:
    """Require the steps of an epoch with parameter servers, and refuse them where rows are counted anyway (K23)."""
    path = ("train", "steps_per_epoch")
    if source != BUILD_DATASET:
        if steps is None:
            return None
        message = f"must not be given unless `data.source` is `{BUILD_DATASET}`. Received: {steps}."
        return Mistake(path=path, message=message, remedy="Leave it out: an epoch is all rows.")
    if steps is not None or strategy != "parameter_server":
        return None
    message = f"is missing; strategy `parameter_server` with `{BUILD_DATASET}` must say how many steps an epoch has."
    return Mistake(path=path, message=message, remedy="Add `steps_per_epoch: <number>` under `train`.")


def check_shards_that_shrink(
    sharding: str | None, workers: int, min_workers: int | None, steps: int | None
) -> Mistake | None:
    """Require a number of steps that does not depend on how many shards there are, where that may change."""
    if sharding != "own" or steps is not None or (min_workers or workers) >= workers:
        return None
    message = (
        "is missing; `data.sharding: own` with `cluster.min_workers` must say how many steps an epoch has, since the "
        "number of shards may change."
    )
    return Mistake(
        path=("train", "steps_per_epoch"), message=message, remedy="Add `steps_per_epoch: <number>` under `train`."
    )


def find_dataset_problems(parameters: Sequence[str], data: DataSpec) -> tuple[Problem, ...]:
    r"""Return why a `build_dataset` with these parameters could not be called.

    >>> data = DataSpec(source="build_dataset", sharding="own")
    >>> print(*find_dataset_problems(["split", "batch_size"], data), sep="\n")
    data.sharding: own needs a build_dataset that takes shard, to give that share of the rows alone.
    data.sharding: own needs a build_dataset that takes shards, to give that share of the rows alone.
    """
    called = f"{BUILD_DATASET}({', '.join(parameters)})"
    missing = [name for name in _NEEDED[data.sharding] if name not in parameters]
    problems = [
        Problem(field="data.sharding", message=_explain_shard(name))
        if name in ("shard", "shards")
        else Problem(field="model.entrypoint", message=f"{called} must take {name}.")
        for name in missing
    ]
    problems += [
        Problem(
            field=f"data.params.{name}",
            message=f"must be a parameter of {called}.",
            remedy=say_nearest(name, parameters),
        )
        for name in data.params
        if name not in parameters
    ]
    return (*problems, *(_refuse_twice(name) for name in data.params if name in DATASET_ARGUMENTS))


def _explain_shard(name: str) -> str:
    return f"own needs a {BUILD_DATASET} that takes {name}, to give that share of the rows alone."


def _refuse_twice(name: str) -> Problem:
    return Problem(field=f"data.params.{name}", message="must not be given: Ganger gives it.", remedy="Rename it.")
