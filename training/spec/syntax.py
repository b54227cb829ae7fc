"""What the YAML parser complains about, in words for people who did not write a YAML parser."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import yaml

from training.spec.mistake import Mistake
from training.spec.wording import shorten


@dataclass(frozen=True, slots=True, kw_only=True)
class _Explanation:
    """Words for a complaint that contains all of `signs`; `at_start` when the line where the construct began helps."""

    signs: tuple[str, ...]
    message: str
    remedy: str
    at_start: bool = False


_TAB: Final = ("the line is indented with a tab; YAML takes spaces only.", "Indent it with spaces.")

#: Both parsers of PyYAML, libyaml and the pure one, word the same complaints differently; the first match counts.
_EXPLANATIONS: Final = (
    _Explanation(
        signs=("mapping values are not allowed",),
        message="the line holds a second `: `, or is indented deeper than the lines of its block.",
        remedy="Put a text that holds `: ` in quotes, or mend the indentation.",
    ),
    _Explanation(
        signs=("tab character",),
        message=_TAB[0],
        remedy=_TAB[1],
    ),
    _Explanation(
        signs=("quoted scalar", "end of stream"),
        message="a quote is opened here and never closed.",
        remedy="Close it.",
        at_start=True,
    ),
    _Explanation(
        signs=("quoted scalar", "escape"),
        message="a text in double quotes holds a `\\` that begins no known escape.",
        remedy="Write the text in single quotes.",
    ),
    _Explanation(
        signs=("flow sequence",),
        message="a list is opened with `[` here and not closed with `]`, or a `,` is missing in it.",
        remedy="Close it, or put a `,` between its items.",
        at_start=True,
    ),
    _Explanation(
        signs=("flow mapping",),
        message="a block is opened with `{` here and not closed with `}`, or a `,` is missing in it.",
        remedy="Close it, or put a `,` between its keys.",
        at_start=True,
    ),
    _Explanation(
        signs=("simple key", "':'"),
        message="the line is not of the form `key: value`.",
        remedy="Write a `:` and a space after the key.",
        at_start=True,
    ),
    _Explanation(
        signs=("block collection",),
        message="the line is neither an item (`- …`) of the list above nor indented less than it.",
        remedy="Begin it with `- `, or mend the indentation.",
    ),
    _Explanation(
        signs=("block sequence",),
        message="the line is neither an item (`- …`) of the list above nor indented less than it.",
        remedy="Begin it with `- `, or mend the indentation.",
    ),
    _Explanation(
        signs=("block mapping",),
        message="the indentation does not fit the lines above.",
        remedy="Indent all keys of a block alike.",
    ),
    _Explanation(
        signs=("scanning an alias",),
        message="a value cannot begin with `*` (in YAML, that refers to an anchor).",
        remedy="Put the value in quotes.",
    ),
    _Explanation(
        signs=("scanning an anchor",),
        message="a value cannot begin with `&` (in YAML, that names an anchor).",
        remedy="Put the value in quotes.",
    ),
    _Explanation(
        signs=(" tag",),
        message="a value cannot begin with `!` (in YAML, that is a tag; tags are not allowed).",
        remedy="Put the value in quotes.",
    ),
)


def explain_syntax(error: yaml.MarkedYAMLError, text: str) -> Mistake:
    """Return the parser's complaint about `text` as a mistake with its line."""
    complaint = f"{error.context or ''} {error.problem or ''}"
    place = error.problem_mark or error.context_mark
    if "cannot start any token" in complaint:
        return _explain_character(text, place)
    for known in _EXPLANATIONS:
        if all(sign in complaint for sign in known.signs):
            chosen = error.context_mark if known.at_start and error.context_mark else place
            return Mistake(path=(), message=known.message, remedy=known.remedy, line=_line(chosen))
    return Mistake(path=(), message=f"is not YAML: {shorten(complaint.strip())}.", line=_line(place))


def _explain_character(text: str, mark: yaml.Mark | None) -> Mistake:
    lines = text.split("\n")
    line = lines[mark.line] if mark and mark.line < len(lines) else ""
    character = line[mark.column : mark.column + 1] if mark else ""
    if character == "\t":
        message, remedy = _TAB
    else:
        message = f"a value cannot begin with `{shorten(character)}`."
        remedy = "Put the value in quotes."
    return Mistake(path=(), message=message, remedy=remedy, line=_line(mark))


def _line(mark: yaml.Mark | None) -> int:
    return mark.line + 1 if mark else 0
