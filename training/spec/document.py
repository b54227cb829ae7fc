"""YAML text as plain data that remembers its lines.

Built from the parser's events rather than with a PyYAML loader: no tag ever makes an object, no alias is ever expanded,
every value has its line, and all mistakes are found at once. libyaml's parser is 25 times as fast as the pure one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from training.errors import Problem, SpecError
from training.spec.mistake import KeyPath, Mistake, render_path
from training.spec.scalars import Scalar, ScalarError, resolve_scalar
from training.spec.syntax import explain_syntax
from training.spec.wording import shorten

#: A pipeline file is nested 5 deep; the bound keeps hostile text from exhausting the stack.
MAX_DEPTH: Final = 32

_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """Plain data and where each part of it comes from.

    Attributes:
        value: The data: dicts with text keys, lists, text, numbers, booleans, None.
        file: Path as the user gave it; empty for data that came from Python.
        lines: Line of each value, from 1.
        overridden: What was said in place of the file, by path, such as `--set train.epochs=3`.
        mistakes: What is wrong with the text; the values concerned are None.
    """

    value: Any
    file: str = ""
    lines: Mapping[KeyPath, int] = field(default_factory=dict)
    overridden: Mapping[KeyPath, str] = field(default_factory=dict)
    mistakes: tuple[Mistake, ...] = ()

    def locate(self, mistake: Mistake) -> Problem:
        """Return a mistake with its file and line, or with the override that it is in."""
        file, line = (self.file, mistake.line) if mistake.line else self._place(mistake.path)
        return Problem(
            field=render_path(mistake.path), message=mistake.message, remedy=mistake.remedy, file=file, line=line
        )

    def _place(self, path: KeyPath) -> tuple[str, int]:
        for length in range(len(path), -1, -1):
            prefix = path[:length]
            if prefix in self.overridden:
                return self.overridden[prefix], 0
            if prefix in self.lines:
                return self.file, self.lines[prefix]
        return self.file, 0


def parse_document(text: str, file: str = "") -> Document:
    """Return the single YAML document in `text`.

    Raises:
        SpecError: The text is not YAML, nested too deep, or holds more than one document.
    """
    unprintable = _UNPRINTABLE.search(text)
    if unprintable:
        line = text.count("\n", 0, unprintable.start()) + 1
        message = f"the text holds the control character {unprintable.group()!a}."
        raise SpecError([Problem(field="", message=message, remedy="Remove it.", file=file, line=line)])
    reader = _EventReader(text)
    try:
        value = reader.read()
    except yaml.MarkedYAMLError as error:
        reader.mistakes.append(explain_syntax(error, text))
    except _TooDeepError as error:
        reader.mistakes.append(error.mistake)
    else:
        return Document(value=value, file=file, lines=reader.lines, mistakes=tuple(reader.mistakes))
    unfinished = Document(value=None, file=file, lines=reader.lines)
    raise SpecError([unfinished.locate(mistake) for mistake in reader.mistakes])


class _TooDeepError(Exception):
    def __init__(self, mistake: Mistake) -> None:
        self.mistake = mistake
        super().__init__(mistake.message)


class _EventReader:
    """Builds one document from parser events; a fresh one for each text."""

    def __init__(self, text: str) -> None:
        self._events: Iterator[yaml.Event] = yaml.parse(text, Loader=_LOADER)
        self.lines: dict[KeyPath, int] = {}
        self.mistakes: list[Mistake] = []

    def read(self) -> Any:
        """Return the document's value; None for an empty text."""
        next(self._events)
        if isinstance(next(self._events), yaml.StreamEndEvent):
            return None
        value = self._value(next(self._events), ())
        next(self._events)
        after = next(self._events)
        if not isinstance(after, yaml.StreamEndEvent):
            message = "a second document begins here (after `---`); a file holds one."
            self._refuse((), message, "Move it to a file of its own.", after)
        return value

    def _value(self, event: yaml.Event, path: KeyPath) -> Any:
        self.lines.setdefault(path, _line(event))
        self._refuse_extras(event, path)
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event, path)
        if isinstance(event, yaml.AliasEvent):
            return None
        if len(path) >= MAX_DEPTH:
            message = f"is nested deeper than {MAX_DEPTH} levels."
            raise _TooDeepError(Mistake(path=path[:4], message=message, line=_line(event)))
        return self._sequence(path) if isinstance(event, yaml.SequenceStartEvent) else self._mapping(path)

    def _scalar(self, event: yaml.ScalarEvent, path: KeyPath) -> Scalar:
        if "\0" in event.value:
            self._refuse(path, "holds a zero byte.", "Remove it.", event)
        if not event.implicit[0]:
            return event.value
        try:
            return resolve_scalar(event.value)
        except ScalarError as error:
            self._refuse(path, error.message, error.remedy, event)
            return None

    def _sequence(self, path: KeyPath) -> list[Any]:
        items: list[Any] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            items.append(self._value(event, (*path, len(items))))
        return items

    def _mapping(self, path: KeyPath) -> dict[str, Any]:
        block: dict[str, Any] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            key = self._key(event, path)
            value = next(self._events)
            if key is None:
                self._skip(value)
            elif key in block:
                first = self.lines[(*path, key)]
                self._refuse((*path, key), f"is given twice, first on line {first}.", "Remove one of the two.", event)
                self._skip(value)
            else:
                self.lines[(*path, key)] = _line(event)
                block[key] = self._value(value, (*path, key))
        return block

    def _key(self, event: yaml.Event, path: KeyPath) -> str | None:
        """Return a key as it is written, so that `on:` and `1:` are keys like all others; None if it is not text."""
        if isinstance(event, yaml.ScalarEvent):
            self._refuse_extras(event, (*path, event.value))
            return event.value
        message = "a key must be text. Received: a list, a block or an alias as a key."
        self._refuse(path, message, "Put a text that begins with `{`, `[` or `*` in quotes.", event)
        self._skip(event)
        return None

    def _skip(self, event: yaml.Event) -> None:
        depth = _depth_change(event)
        while depth:
            depth += _depth_change(next(self._events))

    def _refuse_extras(self, event: yaml.Event, path: KeyPath) -> None:
        """Refuse tags (they name Python objects), anchors and aliases (they can expand without bound)."""
        anchor, tag = getattr(event, "anchor", None), getattr(event, "tag", None)
        if isinstance(event, yaml.AliasEvent):
            message = f"must be written out. Received: the alias `*{shorten(anchor or '')}`."
            self._refuse(path, message, "Repeat the value, or put a text that begins with `*` in quotes.", event)
        elif anchor is not None:
            message = f"must not have an anchor. Received: `&{shorten(anchor)}`."
            self._refuse(path, message, "Remove it, or put a text that begins with `&` in quotes.", event)
        if tag is not None:
            message = f"must not have a tag. Received: `{shorten(tag.replace('tag:yaml.org,2002:', '!!'))}`."
            self._refuse(path, message, "Remove it, or put a text that begins with `!` in quotes.", event)

    def _refuse(self, path: KeyPath, message: str, remedy: str, event: yaml.Event) -> None:
        self.mistakes.append(Mistake(path=path, message=message, remedy=remedy, line=_line(event)))


def _line(event: yaml.Event) -> int:
    mark = event.start_mark
    return mark.line + 1 if mark else 0


def _depth_change(event: yaml.Event) -> int:
    return isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
