"""Where a dotted path leads inside the models: which model owns it, which field it is, what else could stand there.

Pydantic reports places in terms of its own: union variants (`train.tensorflow.strategy`) and `[key]` are among the
keys. This module walks the annotations to tell those from what the user wrote.
"""

from __future__ import annotations

import types
from dataclasses import dataclass
from functools import cache
from itertools import zip_longest
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, Tag
from pydantic.fields import FieldInfo

from training.spec.mistake import Key, KeyPath

Model = type[BaseModel]


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """A place in the models.

    Attributes:
        path: The keys, in YAML names, without those that only pydantic knows.
        annotation: Type of the value there, without `Annotated` and `None`; `Any` when unknown.
        owner: The model that the last key belongs to; None inside a dict or list.
        field: The field of `owner` that the last key names; None when it has none of that name.
        siblings: The models that `owner` was chosen from by a key such as `engine`, itself included.
    """

    path: KeyPath
    annotation: Any
    owner: Model | None = None
    field: FieldInfo | None = None
    siblings: tuple[Model, ...] = ()


def locate(root: Model, loc: tuple[Key, ...]) -> Location:
    """Return the place that pydantic calls `loc` in errors of the model `root`."""
    here = Location(path=(), annotation=root)
    siblings: tuple[Model, ...] = ()
    is_key = False
    for part, after in zip_longest(loc, loc[1:]):
        if is_key:  # pydantic's `[key]`: said already; anywhere else it is a key of the user's
            is_key = False
            continue
        members = list_members(here.annotation)
        if len(members) > 1:
            chosen = next((member for member in members if part in _labels(member)), Any)
            here = Location(path=here.path, annotation=_unwrap(chosen), owner=here.owner, field=here.field)
            siblings = tuple(member for member in members if _is_model(member))
            continue
        is_key = after == "[key]" and get_origin(here.annotation) is dict
        here = _step(here, part, siblings, is_key=is_key)
        siblings = ()
    return here


def _step(here: Location, part: Key, siblings: tuple[Model, ...], *, is_key: bool) -> Location:
    """Return the place that `part` leads to; with `is_key`, the key of a dict itself and not its value."""
    path = (*here.path, part)
    if _is_model(here.annotation):
        owner: Model = here.annotation
        field = find_field(owner, str(part))
        annotation = _unwrap(field.annotation) if field else Any
        return Location(path=path, annotation=annotation, owner=owner, field=field, siblings=siblings)
    arguments, origin = get_args(here.annotation), get_origin(here.annotation)
    if origin is dict:
        return Location(path=path, annotation=_unwrap(arguments[0 if is_key else 1]))
    return Location(path=path, annotation=_unwrap(arguments[0]) if origin in (tuple, list) else Any)


def list_members(annotation: Any) -> tuple[Any, ...]:
    """Return the members of a union, or the annotation alone."""
    return get_args(annotation) if get_origin(annotation) in (Union, types.UnionType) else (annotation,)


def list_choices(annotation: Any) -> tuple[Any, ...]:
    """Return the values of a `Literal`; empty for any other type."""
    return get_args(annotation) if get_origin(annotation) is Literal else ()


def list_keys(model: Model) -> tuple[str, ...]:
    """Return the YAML names of a model's fields, in order."""
    return tuple(field.alias or name for name, field in model.model_fields.items())


def find_field(model: Model, key: str) -> FieldInfo | None:
    """Return the field of a model that a YAML key names."""
    return next((field for name, field in model.model_fields.items() if (field.alias or name) == key), None)


def find_tag(model: Model) -> tuple[str, str] | None:
    """Return the key and value that choose this model from its siblings, such as `("engine", "mxnet")`."""
    for name, field in model.model_fields.items():
        choices = list_choices(field.annotation)
        if len(choices) == 1 and field.is_required():
            return name, choices[0]
    return None


@cache
def list_blocks(root: Model) -> tuple[tuple[KeyPath, Model], ...]:
    """Return every model reachable from `root` by keys alone, with its path; several models for a union."""
    found: list[tuple[KeyPath, Model]] = [((), root)]
    for path, model in found:
        for name, field in model.model_fields.items():
            for member in list_members(_unwrap(field.annotation)):
                inner = _unwrap(member)
                if _is_model(inner):
                    found.append(((*path, field.alias or name), inner))
    return tuple(found)


def _unwrap(annotation: Any) -> Any:
    """Return an annotation without `Annotated` and without `None` as an alternative."""
    if get_origin(annotation) is Annotated:
        return _unwrap(get_args(annotation)[0])
    members = list_members(annotation)
    if type(None) in members and len(members) > 1:
        return _unwrap(Union[tuple(member for member in members if member is not type(None))])  # noqa: UP007
    return annotation


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _labels(member: Any) -> tuple[str, ...]:
    """Return what pydantic may call a union member in an error's place."""
    if get_origin(member) is Annotated:
        return tuple(extra.tag for extra in get_args(member)[1:] if isinstance(extra, Tag))
    tag = find_tag(member) if _is_model(member) else None
    return (tag[1],) if tag else ()
