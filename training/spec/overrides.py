"""Values said beside the file: `--set train.epochs=3` on the command line, fields of a trigger form."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from training.errors import Problem, SpecError
from training.spec.document import Document, parse_document
from training.spec.mistake import KeyPath, Mistake, parse_path, render_path
from training.spec.plain import read_plain
from training.spec.wording import shorten, show


def parse_overrides(arguments: Iterable[str]) -> dict[str, Any]:
    """Return the values of `--set` arguments by dotted path; a path that is given twice counts as given last.

    Values are YAML: `3`, `0.5`, `true`, `null`, `[128, 64]`, `{min: 0.9}`; anything else is text.

    >>> parse_overrides(["train.epochs=3", "model.params.hidden=[128, 64]"])
    {'train.epochs': 3, 'model.params.hidden': [128, 64]}

    Raises:
        SpecError: An argument is not of the form `field=value`; holds a problem for each such argument.
    """
    values: dict[str, Any] = {}
    problems: list[Problem] = []
    for argument in arguments:
        try:
            field, value = _parse_argument(argument)
        except SpecError as error:
            problems.extend(error.problems)
        else:
            values.pop(field, None)
            values[field] = value
    if problems:
        raise SpecError(problems)
    return values


def _parse_argument(argument: str) -> tuple[str, Any]:
    source = f"--set {shorten(argument)}"
    field, equals, text = argument.partition("=")
    field = field.strip()
    if not equals or not all(parse_path(field)):
        message = "must be a dotted field, `=` and a value."
        raise SpecError([Problem(field="", message=message, remedy="Such as: --set train.epochs=3", file=source)])
    try:
        document = parse_document(text)
    except SpecError as error:
        problems = [replace(problem, field=field, file=source, line=0) for problem in error.problems]
        raise SpecError(problems) from None
    if document.mistakes:
        prefix = parse_path(field)
        moved = [replace(mistake, path=(*prefix, *mistake.path), line=0) for mistake in document.mistakes]
        where = Document(value=None, overridden={(): source})
        raise SpecError([where.locate(mistake) for mistake in moved])
    return field, document.value


def apply_overrides(document: Document, overrides: Mapping[str, Any], origin: str = "--set") -> Document:
    """Return a document with the values of dotted paths replaced; blocks that are absent are made.

    Args:
        document: What to change.
        overrides: Values by dotted path, such as `{"train.epochs": 3}`.
        origin: What to call the source of the values in error messages.
    """
    for field, value in overrides.items():
        document = _apply(document, parse_path(field), value, f"{origin} {field}={_render(value)}")
    return document


def _apply(document: Document, path: KeyPath, value: object, source: str) -> Document:
    plain, mistakes = read_plain(value, path)
    root = dict(document.value)
    sources = {path: source}
    block = root
    for depth, key in enumerate(path[:-1], start=1):
        inner = block.get(key)
        if inner is None:
            sources[path[:depth]] = source
        elif not isinstance(inner, dict):
            above = render_path(path[:depth])
            message = f"cannot be set alone, since {above} is {show(inner)}."
            mistake = Mistake(path=path, message=message, remedy=f"Set the whole of {above}.")
            return _changed(document, path, document.value, sources, [mistake])
        block[key] = dict(inner or {})
        block = block[key]
    block[path[-1]] = plain
    return _changed(document, path, root, sources, mistakes)


def _changed(
    document: Document, path: KeyPath, value: Any, sources: Mapping[KeyPath, str], mistakes: Iterable[Mistake]
) -> Document:
    """Return `document` with a new value and without what was known of the value that `path` had before."""
    return replace(
        document,
        value=value,
        lines={known: line for known, line in document.lines.items() if known[: len(path)] != path},
        overridden={
            **{known: source for known, source in document.overridden.items() if known[: len(path)] != path},
            **sources,
        },
        mistakes=(*(m for m in document.mistakes if m.path[: len(path)] != path), *mistakes),
    )


def _render(value: object) -> str:
    """Return a value about as it was typed, short enough for a message."""
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    return shorten(str(value)) if isinstance(value, str | int | float | list | dict) else type(value).__name__
