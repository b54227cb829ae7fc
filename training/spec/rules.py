"""Rules between blocks of a spec: each a pure function of the few values it is about.

A rule runs when its own values are right, whatever else is wrong in the file, so that all mistakes are told at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from training.spec.fields import find_field, find_tag, list_members, locate
from training.spec.mistake import KeyPath, Mistake, parse_path
from training.spec.pipeline import PipelineSpec
from training.spec.wording import list_words

#: Strategies whose ranks are processes of their own, by engine. All others run one process.
SEVERAL_WORKERS: Final = {
    "tensorflow": ("multi_worker_mirrored", "parameter_server", "pipeline"),
    "horovod": ("horovod",),
    "mxnet": ("dist_sync", "dist_async"),
}
#: Strategies whose ranks each take an equal share of every global batch.
EQUAL_SHARES: Final = ("multi_worker_mirrored", "horovod", "dist_sync")

_UNKNOWN: Final = object()


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


def check_args(args: Sequence[str], script: str | None) -> Mistake | None:
    """Refuse arguments that no script would get."""
    if script is not None or not args:
        return None
    message = "must not be given without `train.script`, which would get them."
    return Mistake(path=("train", "args"), message=message, remedy="Use `model.params` for a model file.")


def check_label(source: str, label: str | None) -> Mistake | None:
    """Require the label column of a table."""
    if label is not None or not source.lower().endswith(".csv"):
        return None
    message = f"is missing; a table ({source}) must say which column holds the label."
    return Mistake(path=("data", "label"), message=message, remedy="Add `label: <column>` under `data`.")


def check_workers(engine: str, strategy: str, workers: int) -> Mistake | None:
    """Refuse several workers for a strategy that would leave all but one without work."""
    if strategy != "single" or workers == 1:
        return None
    several = SEVERAL_WORKERS[engine]
    message = f"must be 1 with strategy `single`. Received: {workers}."
    remedy = f"Set it to 1, or set train.strategy to {list_words(several)}, which {_verb(several)} several workers."
    return Mistake(path=("cluster", "workers"), message=message, remedy=remedy)


def check_batch_size(strategy: str, batch_size: int, workers: int) -> Mistake | None:
    """Require a global batch that divides into equal shares, since only then N ranks train as one process does.

    >>> check_batch_size("multi_worker_mirrored", 10, 4).message
    'must be a multiple of the 4 workers, each of which takes an equal share of the global batch. Received: 10.'
    """
    if strategy not in EQUAL_SHARES or batch_size % workers == 0:
        return None
    below = batch_size // workers * workers
    nearest = f"{below} or {below + workers}" if below else str(workers)
    message = (
        f"must be a multiple of the {workers} workers, each of which takes an equal share of the global batch. "
        f"Received: {batch_size}."
    )
    return Mistake(path=("train", "batch_size"), message=message, remedy=f"Nearest: {nearest}.")


def check_held_out_rows(validation_fraction: float, require: Mapping[str, object]) -> Mistake | None:
    """Refuse requirements that no row could show to be met."""
    if validation_fraction > 0 or not require:
        return None
    message = "must be more than 0 where `evaluate.require` is given: it is held-out rows that show it. Received: 0."
    return Mistake(path=("data", "validation_fraction"), message=message, remedy="Set it to 0.2, say.")


def _verb(words: Sequence[str]) -> str:
    return "takes" if len(words) == 1 else "take"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    check: Callable[..., Mistake | None]
    needs: tuple[str, ...]


_RULES: Final = (
    _Rule(check=check_model_or_script, needs=("model", "train.script")),
    _Rule(check=check_args, needs=("train.args", "train.script")),
    _Rule(check=check_label, needs=("data.source", "data.label")),
    _Rule(check=check_held_out_rows, needs=("data.validation_fraction", "evaluate.require")),
    _Rule(check=check_workers, needs=("train.engine", "train.strategy", "cluster.workers")),
    _Rule(check=check_batch_size, needs=("train.strategy", "train.batch_size", "cluster.workers")),
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
    fields = [find_field(model, str(path[-1])) for model in chosen]
    defaults = [field.get_default() for field in fields if field and not field.is_required()]
    return defaults[0] if defaults and all(default == defaults[0] for default in defaults) else _UNKNOWN
