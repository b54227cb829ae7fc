"""Rules between blocks of a spec: each a pure function of the few values it is about.

A rule runs when its own values are right, whatever else is wrong in the file, so that all mistakes are told at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from training.spec.dataset_rules import (
    check_pipeline_engine,
    check_pipeline_label,
    check_sharding,
    check_shards_that_shrink,
    check_steps_per_epoch,
)
from training.spec.fields import find_field, find_tag, list_members, locate
from training.spec.mistake import KeyPath, Mistake, parse_path
from training.spec.parallelism import (
    DEVICE_STRATEGIES,
    ELASTIC_STRATEGIES,
    SERVER_STRATEGIES,
    count_devices,
    count_replicas,
    list_smaller,
)
from training.spec.pipeline import PipelineSpec
from training.spec.sentences import choices_of
from training.spec.stage_rules import check_partition, check_stage_micro_batches, check_stages
from training.spec.train import HorovodTrain, MXNetTrain, TensorFlowTrain
from training.spec.wording import list_words

_UNKNOWN: Final = object()
_STRATEGIES_OF: Final = {
    engine: choices_of(model, "strategy")
    for engine, model in (("tensorflow", TensorFlowTrain), ("horovod", HorovodTrain), ("mxnet", MXNetTrain))
}


def check_model_or_script(model: object, script: str | None) -> Mistake | None:
    """Require exactly one of a model file and a training script."""
    if model is None and script is None:
        message = "is missing, and so is `train.script`; one of them must be given."
        remedy = "Add `model:` with an `entrypoint:` below it."
    elif model is not None and script is not None:
        message, remedy = "must not be given together with `train.script`.", "Remove one of them."
    else:
        return None
    return Mistake(path=("model",), message=message, remedy=remedy)


def check_data(data: object, script: str | None) -> Mistake | None:
    """Require rows, unless a script may have its own."""
    if data is not None or script is not None:
        return None
    message = "is missing; only a pipeline with `train.script` may do without."
    return Mistake(path=("data",), message=message, remedy="Add `data:` with a `source:` below it.")


def check_rows_of_script(data: object, script: str | None, require: Mapping[str, object]) -> Mistake | None:
    """Refuse requirements of a script without data: there are no rows that could show them to be met."""
    if data is not None or script is None or not require:
        return None
    message = "must not be given without `data`: it is held-out rows that show it."
    return Mistake(path=("evaluate", "require"), message=message, remedy="Add `data:`, or leave it out.")


def check_left_to_script(key: str, default: object, script: str | None, value: object) -> Mistake | None:
    """Refuse a value that no script would hear of."""
    if script is None or value == default:
        return None
    message = "must not be given with `train.script`, which decides that itself."
    return Mistake(path=("train", key), message=message, remedy="Hand it to the script in `train.args`.")


def check_args(args: Sequence[str], script: str | None) -> Mistake | None:
    """Refuse arguments that no script would get."""
    if script is not None or not args:
        return None
    message = "must not be given without `train.script`, which would get them."
    return Mistake(path=("train", "args"), message=message, remedy="Use `model.params` for a model file.")


def check_label(source: str | None, label: str | None) -> Mistake | None:
    """Require the label column of a table."""
    if source is None or label is not None or not source.lower().endswith(".csv"):
        return None
    message = f"is missing; a table ({source}) must say which column holds the label."
    return Mistake(path=("data", "label"), message=message, remedy="Add `label: <column>` under `data`.")


def check_devices(engine: str, strategy: str, devices: int | None) -> Mistake | None:
    """Refuse devices for a strategy whose processes each use one."""
    if devices is None or strategy in DEVICE_STRATEGIES:
        return None
    message = f"must not be given with strategy `{strategy}`, whose processes use one device each. Received: {devices}."
    return Mistake(path=("cluster", "devices"), message=message, remedy=_leave_out_or_set(engine, DEVICE_STRATEGIES))


def check_parameter_servers(engine: str, strategy: str, servers: int | None) -> Mistake | None:
    """Refuse parameter servers for a strategy that would not use them."""
    if servers is None or strategy in SERVER_STRATEGIES:
        return None
    message = f"must not be given with strategy `{strategy}`. Received: {servers}."
    remedy = _leave_out_or_set(engine, SERVER_STRATEGIES)
    return Mistake(path=("cluster", "parameter_servers"), message=message, remedy=remedy)


def _leave_out_or_set(engine: str, strategies: Sequence[str]) -> str:
    """Return the advice to take one of `strategies`, of which only those that `engine` has are of use.

    >>> _leave_out_or_set("tensorflow", SERVER_STRATEGIES), _leave_out_or_set("horovod", SERVER_STRATEGIES)
    ('Leave it out, or set train.strategy to parameter_server.', 'Leave it out.')
    """
    own = [strategy for strategy in strategies if strategy in _STRATEGIES_OF[engine]]
    return f"Leave it out, or set train.strategy to {list_words(own)}." if own else "Leave it out."


def check_min_workers(
    engine: str, strategy: str, batch_size: int, workers: int, min_workers: int | None, script: str | None = None
) -> Mistake | None:
    """Require numbers of workers that the gang can shrink to; a script cuts its batches itself."""
    if min_workers is None:
        return None
    path = ("cluster", "min_workers")
    if min_workers > workers:
        return Mistake(path=path, message=f"must be at most `workers`, {workers}. Received: {min_workers}.")
    if strategy not in ELASTIC_STRATEGIES:
        message = f"must not be given with strategy `{strategy}`, which cannot go on with fewer ranks."
        return Mistake(path=path, message=message, remedy=_leave_out_or_set(engine, ELASTIC_STRATEGIES))
    if min_workers < workers and not list_smaller(workers, min_workers, None if script else batch_size):
        message = (
            f"must allow a number of ranks below {workers} that divides train.batch_size, {batch_size}. "
            f"Received: {min_workers}."
        )
        return Mistake(path=path, message=message, remedy="Lower it, or change train.batch_size.")
    return None


def check_reduction(reduction: str | None, workers: int) -> Mistake | None:
    """Require a number of ranks that Adasum can combine pair by pair."""
    if reduction != "adasum" or workers.bit_count() == 1:
        return None
    below = 1 << (workers.bit_length() - 1)
    message = (
        f"must be `average` unless the number of workers is a power of 2. Received: adasum with {workers} workers."
    )
    remedy = f"Set cluster.workers to {below} or {2 * below}."
    return Mistake(path=("train", "reduction"), message=message, remedy=remedy)


def check_placement(
    strategy: str, placement: Mapping[str, object] | None, workers: int, devices: int | None
) -> Mistake | None:
    """Require that blocks are placed on devices of the one process, and that each device gets some (K33)."""
    path = ("train", "placement")
    if not placement:
        return None
    if strategy != "model_parallel":
        message = f"must not be given with strategy `{strategy}`, which puts whole blocks on devices."
        return Mistake(path=path, message=message, remedy="Leave it out, or set train.strategy to model_parallel.")
    count = count_devices(strategy, workers, devices)
    for block, device in placement.items():
        if not isinstance(device, int):
            message = f"must be the number of a device of the one process: none lies elsewhere. Received: {device}."
            return Mistake(path=(*path, block), message=message, remedy=f"Give 0 to {count - 1}.")
        if device >= count:
            message = f"must be one of the {count} devices, which count from 0. Received: {device}."
            return Mistake(path=(*path, block), message=message, remedy="Choose another one, or raise cluster.devices.")
    empty = [str(device) for device in range(count) if device not in placement.values()]
    if empty:
        message = f"must give each of the {count} devices a block. Received: none for {list_words(empty)}."
        return Mistake(path=path, message=message, remedy="Lower cluster.devices, or place a block there.")
    return None


def check_micro_batches(strategy: str, micro_batches: int | None, batch_size: int) -> Mistake | None:
    """Require micro-batches that each have a row, of a strategy that makes them (K31)."""
    path = ("train", "micro_batches")
    if micro_batches is None:
        return None
    if strategy != "model_parallel":
        message = f"must not be given with strategy `{strategy}`. Received: {micro_batches}."
        return Mistake(path=path, message=message, remedy="Leave it out, or set train.strategy to model_parallel.")
    if micro_batches > batch_size:
        message = f"must be at most the {batch_size} rows of a batch. Received: {micro_batches}."
        return Mistake(path=path, message=message, remedy="Lower it, or raise train.batch_size.")
    return None


def check_batch_size(
    strategy: str, batch_size: int, workers: int, devices: int | None = None, script: str | None = None
) -> Mistake | None:
    """Require a global batch that divides into equal shares, since only then N replicas train as one process does.

    A script cuts its batches itself.

    >>> check_batch_size("multi_worker_mirrored", 10, 4).message
    'must be a multiple of the 4 workers, each of which takes an equal share of the global batch. Received: 10.'
    """
    shares = count_replicas(strategy, workers, devices)
    if script is not None or batch_size % shares == 0:
        return None
    below = batch_size // shares * shares
    nearest = f"{below} or {below + shares}" if below else str(shares)
    whose = "devices" if strategy in DEVICE_STRATEGIES else "workers"
    message = (
        f"must be a multiple of the {shares} {whose}, each of which takes an equal share of the global batch. "
        f"Received: {batch_size}."
    )
    return Mistake(path=("train", "batch_size"), message=message, remedy=f"Nearest: {nearest}.")


def check_held_out_rows(validation_fraction: float | None, require: Mapping[str, object]) -> Mistake | None:
    """Refuse requirements that no row could show to be met."""
    if validation_fraction is None or validation_fraction > 0 or not require:
        return None
    message = "must be more than 0 where `evaluate.require` is given: it is held-out rows that show it. Received: 0."
    return Mistake(path=("data", "validation_fraction"), message=message, remedy="Set it to 0.2, say.")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    check: Callable[..., Mistake | None]
    needs: tuple[str, ...]


_LEFT_KEYS: Final = (
    *("epochs", "batch_size", "seed", "checkpoint"),
    *("learning_rate_scaling", "warmup_steps", "compression", "reduction"),
)
#: What a script decides itself, with its default: that much cannot be told from nothing.
LEFT_TO_SCRIPT: Final[dict[str, object]] = {
    **{key: HorovodTrain.model_fields[key].default for key in _LEFT_KEYS},
    "hybridize": MXNetTrain.model_fields["hybridize"].default,
}
_STAGES: Final = ("train.pipeline.stages", "cluster.workers")
_RULES: Final = (
    _Rule(check=check_data, needs=("data", "train.script")),
    _Rule(check=check_model_or_script, needs=("model", "train.script")),
    _Rule(check=check_rows_of_script, needs=("data", "train.script", "evaluate.require")),
    *(
        _Rule(check=partial(check_left_to_script, key, default), needs=("train.script", f"train.{key}"))
        for key, default in LEFT_TO_SCRIPT.items()
    ),
    _Rule(check=check_args, needs=("train.args", "train.script")),
    _Rule(check=check_label, needs=("data.source", "data.label")),
    _Rule(check=check_pipeline_engine, needs=("data.source", "train.engine", "train.script")),
    _Rule(check=check_pipeline_label, needs=("data.source", "data.label")),
    _Rule(check=check_sharding, needs=("data.source", "data.sharding")),
    _Rule(check=check_steps_per_epoch, needs=("data.source", "train.strategy", "train.steps_per_epoch")),
    _Rule(
        check=check_shards_that_shrink,
        needs=("data.sharding", "cluster.workers", "cluster.min_workers", "train.steps_per_epoch"),
    ),
    _Rule(check=check_held_out_rows, needs=("data.validation_fraction", "evaluate.require")),
    _Rule(check=check_devices, needs=("train.engine", "train.strategy", "cluster.devices")),
    _Rule(check=check_parameter_servers, needs=("train.engine", "train.strategy", "cluster.parameter_servers")),
    _Rule(check=check_stages, needs=("train.strategy", "train.pipeline.stages", "cluster")),
    _Rule(
        check=check_stage_micro_batches,
        needs=("train.strategy", "train.pipeline.micro_batches", *_STAGES, "train.batch_size"),
    ),
    _Rule(check=check_partition, needs=("train.strategy", "train.pipeline.partition", *_STAGES)),
    _Rule(
        check=check_min_workers,
        needs=(
            *("train.engine", "train.strategy", "train.batch_size"),
            *("cluster.workers", "cluster.min_workers", "train.script"),
        ),
    ),
    _Rule(check=check_placement, needs=("train.strategy", "train.placement", "cluster.workers", "cluster.devices")),
    _Rule(check=check_micro_batches, needs=("train.strategy", "train.micro_batches", "train.batch_size")),
    _Rule(check=check_reduction, needs=("train.reduction", "cluster.workers")),
    _Rule(
        check=check_batch_size,
        needs=("train.strategy", "train.batch_size", "cluster.workers", "cluster.devices", "train.script"),
    ),
)


def check_rules(value: dict[str, Any], wrong: Iterable[KeyPath]) -> list[Mistake]:
    """Return the mistakes between blocks of plain data.

    Args:
        value: The spec as plain data.
        wrong: Paths that are known to be wrong or missing; a rule that needs one of them says nothing.
    """
    bad = set(wrong)
    mistakes = []
    for rule in _RULES:
        answers = [_answer(value, parse_path(need), bad) for need in rule.needs]
        if _UNKNOWN not in answers and (mistake := rule.check(*answers)):
            mistakes.append(mistake if _is_given(value, mistake.path) else _name_default(mistake))
    return mistakes


def _is_given(value: Any, path: KeyPath) -> bool:
    for key in path:
        if not isinstance(value, dict) or key not in value:
            return False
        value = value[key]
    return True


def _name_default(mistake: Mistake) -> Mistake:
    """Return a mistake that says, if it names a value, that the value is not in the file."""
    head, received, value = mistake.message.rpartition("Received: ")
    return replace(mistake, message=f"{head}{received}{value[:-1]} (the default).") if received else mistake


def _answer(value: dict[str, Any], path: KeyPath, bad: set[KeyPath]) -> Any:
    """Return what the file or else the models' defaults say at `path`."""
    here: Any = value
    for depth, key in enumerate(path, start=1):
        if key not in here:
            return _default(value, path)
        if path[:depth] in bad:
            return _UNKNOWN
        here = here[key]
        if here is None:
            return None
    return here


def _default(value: dict[str, Any], path: KeyPath) -> Any:
    """Return the default of an absent field: in `train` that of its engine, or what all engines share."""
    if len(path) == 1:
        return None
    models = list_members(locate(PipelineSpec, path[:1]).annotation)
    engine = (value.get("train") or {}).get("engine") if path[0] == "train" else None
    chosen = [model for model in models if engine is None or find_tag(model) == ("engine", engine)]
    for key in path[1:-1]:
        inner = [field for model in chosen if (field := find_field(model, str(key)))]
        chosen = [model for field in inner for model in list_members(field.annotation)]
    fields = [find_field(model, str(path[-1])) for model in chosen]
    defaults = [field.get_default() for field in fields if field and not field.is_required()]
    return defaults[0] if defaults and all(default == defaults[0] for default in defaults) else _UNKNOWN
