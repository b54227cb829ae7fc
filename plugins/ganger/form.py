"""The trigger form of a pipeline's DAG: which fields of the spec it offers, and how what was entered changes the spec.

Airflow checks the values of the form when a run is triggered, by the JSON schema given here. The API lets other keys
through: those are checked when a task starts, by the spec's own loader.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal

from airflow.sdk import Param
from pydantic import BaseModel

from training.errors import Problem, SpecError
from training.spec.file import PipelineFile
from training.spec.loader import pipeline_from_mapping
from training.spec.pipeline import PipelineSpec
from training.spec.wording import find_nearest


@dataclass(frozen=True, slots=True, kw_only=True)
class FormField:
    """One field of the form.

    Attributes:
        name: Name of the parameter.
        block: Block of the spec that it changes.
        key: Field in the block.
        title: What the form calls it.
        maximum: Largest number that the form takes: a slip of the finger should not start a month of training. A file
            that asks for more raises it.
        of: Which pipelines it is for: those with a model file or those with a script, which decides more by itself.
    """

    name: str
    block: str
    key: str
    title: str
    maximum: int | None = None
    of: Literal["both", "model", "script"] = "both"

    @property
    def path(self) -> str:
        """Dotted path in the spec."""
        return f"{self.block}.{self.key}"


FORM = (
    FormField(name="epochs", block="train", key="epochs", title="Epochs", maximum=100_000, of="model"),
    FormField(
        name="batch_size", block="train", key="batch_size", title="Global batch size", maximum=1_048_576, of="model"
    ),
    FormField(name="strategy", block="train", key="strategy", title="Strategy"),
    FormField(name="workers", block="cluster", key="workers", title="Workers", maximum=4096),
    FormField(name="seed", block="train", key="seed", title="Seed", of="model"),
    FormField(name="model_params", block="model", key="params", title="Model parameters", of="model"),
    FormField(name="args", block="train", key="args", title="Arguments of the script", of="script"),
)
_BLOCKS = ("data", "model", "train", "cluster", "evaluate", "register")
_RULES = ("type", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "enum", "items")


def make_params(spec: PipelineSpec) -> dict[str, Param]:
    """Return the parameters of the DAG of `spec`, with its values as defaults."""
    return {field.name: _make_param(field, getattr(spec, field.block)) for field in _fields_of(spec)}


def _fields_of(spec: PipelineSpec) -> list[FormField]:
    kind = "model" if spec.train.script is None else "script"
    return [field for field in FORM if field.of in ("both", kind)]


def apply_params(file: PipelineFile, params: Mapping[str, Any], *, refuse_unknown: bool) -> PipelineFile:
    """Return the pipeline with the parameters of a DAG run applied.

    Args:
        file: The pipeline.
        params: Values by name of a form field, or by dotted path of any field (`train.stall_timeout_s`).
        refuse_unknown: Whether other names are mistakes, or somebody else's.

    Raises:
        SpecError: A name is unknown or a value is not allowed; holds every problem.
    """
    changes: dict[str, Any] = {}
    problems: list[Problem] = []
    fields = {field.name: field for field in FORM}
    for name, value in params.items():
        if name in fields:
            changes.update(_changed(fields[name], file.spec, value))
        elif name.partition(".")[0] in _BLOCKS and "." in name:
            changes[name] = value
        elif refuse_unknown:
            problems.append(_unknown(name))
    if problems:
        raise SpecError(problems)
    return _apply(file, changes) if changes else file


def _changed(field: FormField, spec: PipelineSpec, value: Any) -> dict[str, Any]:
    block = getattr(spec, field.block)
    given = tuple(value) if isinstance(value, list) else value
    is_same = block is not None and getattr(block, field.key) == given and not isinstance(value, bool)
    return {} if is_same else {field.path: value}


def _unknown(name: str) -> Problem:
    names = [field.name for field in FORM]
    nearest = find_nearest(name, names)
    remedy = f"Did you mean {nearest}?" if nearest else f"The form has: {', '.join(names)}."
    return Problem(
        field=f"params.{name}",
        message="must be a parameter of the trigger form, or the dotted path of a field such as train.stop_grace_s.",
        remedy=remedy,
    )


def _apply(file: PipelineFile, changes: Mapping[str, Any]) -> PipelineFile:
    mapping = file.spec.model_dump(mode="json", by_alias=True, exclude_unset=True)
    changed = pipeline_from_mapping(mapping, file.base_dir, overrides=changes, origin="params")
    return replace(changed, path=file.path)


def _make_param(field: FormField, block: BaseModel) -> Param:
    described = _describe_fields(type(block))[field.key]
    schema = {rule: described[rule] for rule in _RULES if rule in described}
    if "const" in described:
        schema |= {"type": "string", "enum": [described["const"]]}
    value = getattr(block, field.key)
    if isinstance(value, tuple):
        value = list(value)  # as JSON has it
    if field.maximum is not None:
        schema["maximum"] = max(field.maximum, value)
    return Param(value, description=described.get("description", ""), title=field.title, **schema)


@cache
def _describe_fields(model: type[BaseModel]) -> dict[str, dict[str, Any]]:
    fields: dict[str, dict[str, Any]] = model.model_json_schema()["properties"]
    return fields
