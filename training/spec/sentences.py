"""The sentence for each of pydantic's error types. Only here are those types known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from training.spec.fields import (
    Location,
    Model,
    find_field,
    find_tag,
    list_blocks,
    list_choices,
    list_keys,
    list_members,
)
from training.spec.mistake import render_path
from training.spec.scalars import ScalarError, resolve_scalar
from training.spec.wording import find_nearest, list_words, shorten, show

Words = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One error of pydantic.

    Attributes:
        root: The model that was validated.
        location: Where.
        received: The value there (for a missing key: the block that lacks it).
        context: Pydantic's `ctx`: limits, expected values.
        message: Pydantic's own words.
    """

    root: Model
    location: Location
    received: Any
    context: Mapping[str, Any]
    message: str


def describe(kind: str, finding: Finding) -> Words:
    """Return message and remedy for one error of pydantic.

    Args:
        kind: Pydantic's error type, such as `int_type`.
        finding: Where it is and what was received.
    """
    return _SENTENCES.get(kind, _anything)(finding)


def choices_of(model: Model, key: str) -> tuple[Any, ...]:
    """Return the words that a key of a model may be, if it is a choice of words."""
    field = find_field(model, key)
    return list_choices(field.annotation) if field else ()


def _missing(finding: Finding) -> Words:
    field = finding.location.field
    description = field.description if field else ""
    return "is missing.", f"Add `{finding.location.path[-1]}:` ({_lower_first(description or '').rstrip('.')})."


def _unknown_key(finding: Finding) -> Words:
    key, owner = str(finding.location.path[-1]), finding.location.owner
    above = finding.location.path[:-1]
    for sibling in finding.location.siblings:
        if (tag := find_tag(sibling)) and find_field(sibling, key):
            return "is not a known key here.", f"It belongs to {tag[0]}: {tag[1]}."
    known = list_keys(owner) if owner else ()
    near = find_nearest(key, known)
    homes = [path for path, model in list_blocks(finding.root) if find_field(model, key) and path != above]
    if homes and (near is None or key.lower() != near.lower()):
        places = dict.fromkeys(f"the block `{render_path(path)}`" if path else "the top level" for path in homes)
        return "is not a known key here.", f"Move it to {list_words(places)}."
    if near:
        return "is not a known key.", f"Did you mean `{near}`?"
    return "is not a known key.", f"Known keys here: {', '.join(known)}."


def wrong_choice(received: object, choices: tuple[Any, ...], among: str = "") -> Words:
    """Return message and remedy for a value that is none of `choices`."""
    near = find_nearest(received, choices) if isinstance(received, str) else None
    message = f"must be {list_words(choices)}{among}. Received: {show(received)}."
    return message, f"Did you mean `{near}`?" if near else ""


def _choice(finding: Finding) -> Words:
    location, received = finding.location, finding.received
    choices = list_choices(location.annotation)
    own = find_tag(location.owner) if location.owner else None
    if not (location.siblings and own):
        return wrong_choice(received, choices)
    among = f" (the choices for {own[0]}: {own[1]})"
    for sibling in location.siblings:
        tag = find_tag(sibling)
        if tag and received in choices_of(sibling, str(location.path[-1])):
            message = f"must be {list_words(choices)}{among}. Received: {show(received)}, which is for {tag[1]}."
            block = render_path(location.path[:-1])
            return message, f"Set {block}.{tag[0]} to {tag[1]}, or choose another {location.path[-1]}."
    return wrong_choice(received, choices, among)


def _block(finding: Finding) -> Words:
    models = [member for member in list_members(finding.location.annotation) if hasattr(member, "model_fields")]
    keys = [key for key in list_keys(models[0]) if all(find_field(model, key) for model in models)] if models else []
    few = ", ".join(sorted(keys, key=lambda key: not _is_required(models[0], key))[:4])
    message = f"must be a block with keys such as {few}. Received: {show(finding.received)}."
    field = finding.location.field
    droppable = finding.received is None and field is not None and not field.is_required()
    return message, f"Write its keys below it, indented{', or remove it' if droppable else ''}."


def _is_required(model: Model, key: str) -> bool:
    field = find_field(model, key)
    return field is not None and field.is_required()


def _named_values(finding: Finding) -> Words:
    message = f"must be a block of names and values. Received: {show(finding.received)}."
    return message, _say_null(finding) if finding.received is None else "Write `name: value` below it, indented."


def _list(finding: Finding) -> Words:
    received = finding.received
    message = f"must be a list. Received: {show(received)}."
    if received is None:
        return message, _say_null(finding)
    single = isinstance(received, str | int | float) and not isinstance(received, bool)
    return message, f"Write [{shorten(str(received))}]." if single else "Write its items as `[a, b]`."


def _text(finding: Finding) -> Words:
    received = finding.received
    if received is None:
        remedy = _say_null(finding)
    else:
        remedy = "Put it in quotes." if isinstance(received, int | float) else ""
    return f"must be text. Received: {show(received)}.", remedy


def _whole_number(finding: Finding) -> Words:
    received = finding.received
    remedy = _say_unquoted(finding, int)
    if isinstance(received, float) and received.is_integer():
        remedy = f"Write {int(received)}."
    return f"must be a whole number. Received: {show(received)}.", remedy


def _number(finding: Finding) -> Words:
    return f"must be a number. Received: {show(finding.received)}.", _say_unquoted(finding, int, float)


def _flag(finding: Finding) -> Words:
    received = finding.received
    word = {"yes": "true", "on": "true", "no": "false", "off": "false"}.get(str(received).lower())
    remedy = f"Write {word}." if word else _say_unquoted(finding, bool)
    return f"must be true or false. Received: {show(received)}.", remedy


def _say_unquoted(finding: Finding, *types: type) -> str:
    """Return the advice to drop quotes, if the text inside them would then be one of `types`."""
    if finding.received is None:
        return _say_null(finding)
    if not isinstance(finding.received, str):
        return ""
    try:
        return "Write it without quotes." if type(resolve_scalar(finding.received)) in types else ""
    except ScalarError as error:
        return error.remedy


def _say_null(finding: Finding) -> str:
    field = finding.location.field
    optional = field is not None and not field.is_required()
    return "Give it a value, or remove the key." if optional else "Give it a value."


def _limit(sentence: str, name: str) -> Callable[[Finding], Words]:
    def words(finding: Finding) -> Words:
        limit = finding.context[name]
        shown = int(limit) if float(limit).is_integer() else limit
        return f"{sentence.format(shown)} Received: {finding.received}.", ""

    return words


def _too_few(finding: Finding) -> Words:
    least = finding.context["min_length"]
    return f"must hold at least {least} {'item' if least == 1 else 'items'}. Received: {show(finding.received)}.", ""


def _empty_text(finding: Finding) -> Words:
    return f"must not be empty. Received: {show(finding.received)}.", "Give it a value."


def _long_text(finding: Finding) -> Words:
    longest, length = finding.context["max_length"], len(finding.received)
    return f"must be at most {longest} characters long. Received: {length} characters.", "Shorten it."


def _own_sentence(finding: Finding) -> Words:
    """Return what one of our own validators said: `must …` or `may …`, without a full stop."""
    said = str(finding.context.get("error", finding.message))
    return f"{said}. Received: {show(finding.received)}.", ""


def _anything(finding: Finding) -> Words:
    return f"is not valid ({_lower_first(finding.message)}). Received: {show(finding.received)}.", ""


def _lower_first(text: str) -> str:
    return text[:1].lower() + text[1:]


#: Pydantic's error types: https://docs.pydantic.dev/latest/errors/validation_errors/
_SENTENCES: Final[dict[str, Callable[[Finding], Words]]] = {
    "missing": _missing,
    "extra_forbidden": _unknown_key,
    "literal_error": _choice,
    "model_type": _block,
    "model_attributes_type": _block,
    "dict_type": _named_values,
    "tuple_type": _list,
    "list_type": _list,
    "string_type": _text,
    "int_type": _whole_number,
    "float_type": _number,
    "bool_type": _flag,
    "greater_than": _limit("must be more than {}.", "gt"),
    "greater_than_equal": _limit("must be at least {}.", "ge"),
    "less_than": _limit("must be less than {}.", "lt"),
    "less_than_equal": _limit("must be at most {}.", "le"),
    "too_short": _too_few,
    "string_too_short": _empty_text,
    "string_too_long": _long_text,
    "value_error": _own_sentence,
    "shape": _own_sentence,
}
