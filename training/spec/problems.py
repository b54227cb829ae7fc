"""What pydantic found, as mistakes in the words of the pipeline file. Only here are pydantic's error types known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from pydantic import ValidationError

from training.spec.fields import (
    Location,
    Model,
    find_field,
    find_tag,
    list_blocks,
    list_choices,
    list_keys,
    list_members,
    locate,
)
from training.spec.mistake import Mistake, render_path
from training.spec.scalars import ScalarError, resolve_scalar
from training.spec.wording import find_nearest, list_words, shorten, show

#: How many of pydantic's errors are put into words: more than anybody reads, few enough for hostile input.
MOST_MISTAKES: Final = 100

Words = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Finding:
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


def find_mistakes(value: Any, root: Model) -> list[Mistake]:
    """Return everything that keeps plain data from being a `root`; empty when nothing does."""
    try:
        root.model_validate(value, by_alias=True, by_name=False)
    except ValidationError as error:
        return explain_validation(error, root)
    return []


def explain_validation(error: ValidationError, root: Model) -> list[Mistake]:
    """Return pydantic's errors about a `root` as mistakes, in pydantic's order, at most `MOST_MISTAKES`."""
    mistakes: list[Mistake] = []
    for details in error.errors(include_url=False)[:MOST_MISTAKES]:
        finding = _Finding(
            root=root,
            location=locate(root, details["loc"]),
            received=details["input"],
            context=details.get("ctx", {}),
            message=details["msg"],
        )
        mistakes.extend(_explain(details["type"], finding))
    return mistakes


def _explain(kind: str, finding: _Finding) -> list[Mistake]:
    if kind in ("union_tag_not_found", "union_tag_invalid"):
        return _explain_untagged(finding)
    if kind == "too_short" and len(finding.received) >= finding.context["min_length"]:
        return []  # pydantic counts the valid items only; those that are not valid are reported themselves
    message, remedy = _WORDS.get(kind, _anything)(finding)
    return [Mistake(path=finding.location.path, message=message, remedy=remedy)]


def _explain_untagged(finding: _Finding) -> list[Mistake]:
    """Report the key that chooses the variant, and whatever is wrong whichever variant would be chosen."""
    tags = {tag[1]: model for model in list_members(finding.location.annotation) if (tag := find_tag(model))}
    block, key = finding.received, finding.context["discriminator"].strip("'")
    if key in block:
        message, remedy = _wrong_choice(block[key], tuple(tags))
    else:
        message, remedy = f"is missing; it must be {list_words(tags)}.", _guess_tag(block, key, tags)
    mistakes = [Mistake(path=(key,), message=message, remedy=remedy), *_find_common(block, key, tags)]
    prefix = finding.location.path
    return [replace(mistake, path=(*prefix, *mistake.path)) for mistake in mistakes]


def _find_common(block: Mapping[str, Any], key: str, tags: Mapping[str, Model]) -> list[Mistake]:
    """Return the mistakes that a block has with every value of its discriminating key."""
    found = [find_mistakes({**block, key: tag}, model) for tag, model in tags.items()]
    shared = set.intersection(*({mistake.path for mistake in mistakes} for mistakes in found))
    common = []
    for mistake in (mistake for mistake in found[0] if mistake.path in shared):
        name = str(mistake.path[0])
        choices = [choice for model in tags.values() for choice in _choices_of(model, name)]
        if choices:
            message, remedy = _wrong_choice(block[name], tuple(dict.fromkeys(choices)))
            mistake = Mistake(path=mistake.path, message=message, remedy=remedy)
        common.append(mistake)
    return common


def _guess_tag(block: Mapping[str, Any], key: str, tags: Mapping[str, Model]) -> str:
    """Advise the tag that the other keys speak for, if they speak for a single one."""
    for name, value in block.items():
        owners = [tag for tag, model in tags.items() if value in _choices_of(model, name)]
        if len(owners) == 1:
            return f"Add `{key}: {owners[0]}`, which has the {name} {value}."
    return f"Add `{key}:`."


def _choices_of(model: Model, key: str) -> tuple[Any, ...]:
    field = find_field(model, key)
    return list_choices(field.annotation) if field else ()


def _missing(finding: _Finding) -> Words:
    field = finding.location.field
    description = field.description if field else ""
    return "is missing.", f"Add `{finding.location.path[-1]}:` ({_lower_first(description or '').rstrip('.')})."


def _unknown_key(finding: _Finding) -> Words:
    key, owner = str(finding.location.path[-1]), finding.location.owner
    above = finding.location.path[:-1]
    for sibling in finding.location.siblings:
        if (tag := find_tag(sibling)) and find_field(sibling, key):
            return "is not a known key here.", f"It belongs to {tag[0]}: {tag[1]}."
    known = list_keys(owner) if owner else ()
    near = find_nearest(key, known)
    homes = [path for path, model in list_blocks(finding.root) if find_field(model, key) and path != above]
    if homes and (near is None or key.lower() != near.lower()):
        return "is not a known key here.", f"Move it to the block `{render_path(homes[0])}`." if homes[0] else (
            "Move it to the top level."
        )
    if near:
        return "is not a known key.", f"Did you mean `{near}`?"
    return "is not a known key.", f"Known keys here: {', '.join(known)}."


def _wrong_choice(received: object, choices: tuple[Any, ...], among: str = "") -> Words:
    near = find_nearest(received, choices) if isinstance(received, str) else None
    message = f"must be {list_words(choices)}{among}. Received: {show(received)}."
    return message, f"Did you mean `{near}`?" if near else ""


def _choice(finding: _Finding) -> Words:
    location, received = finding.location, finding.received
    choices = list_choices(location.annotation)
    own = find_tag(location.owner) if location.owner else None
    if not (location.siblings and own):
        return _wrong_choice(received, choices)
    among = f" with {own[0]}: {own[1]}"
    for sibling in location.siblings:
        tag = find_tag(sibling)
        if tag and received in _choices_of(sibling, str(location.path[-1])):
            message = f"must be {list_words(choices)}{among}. Received: {show(received)}, which is for {tag[1]}."
            block = render_path(location.path[:-1])
            return message, f"Set {block}.{tag[0]} to {tag[1]}, or choose another {location.path[-1]}."
    return _wrong_choice(received, choices, among)


def _block(finding: _Finding) -> Words:
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


def _named_values(finding: _Finding) -> Words:
    message = f"must be a block of names and values. Received: {show(finding.received)}."
    return message, _say_null(finding) if finding.received is None else "Write `name: value` below it, indented."


def _list(finding: _Finding) -> Words:
    received = finding.received
    message = f"must be a list. Received: {show(received)}."
    if received is None:
        return message, _say_null(finding)
    single = isinstance(received, str | int | float) and not isinstance(received, bool)
    return message, f"Write [{shorten(str(received))}]." if single else "Write its items as `[a, b]`."


def _text(finding: _Finding) -> Words:
    received = finding.received
    if received is None:
        remedy = _say_null(finding)
    else:
        remedy = "Put it in quotes." if isinstance(received, int | float) else ""
    return f"must be text. Received: {show(received)}.", remedy


def _whole_number(finding: _Finding) -> Words:
    received = finding.received
    remedy = _say_unquoted(finding, int)
    if isinstance(received, float) and received.is_integer():
        remedy = f"Write {int(received)}."
    return f"must be a whole number. Received: {show(received)}.", remedy


def _number(finding: _Finding) -> Words:
    return f"must be a number. Received: {show(finding.received)}.", _say_unquoted(finding, int, float)


def _flag(finding: _Finding) -> Words:
    received = finding.received
    word = {"yes": "true", "on": "true", "no": "false", "off": "false"}.get(str(received).lower())
    remedy = f"Write {word}." if word else _say_unquoted(finding, bool)
    return f"must be true or false. Received: {show(received)}.", remedy


def _say_unquoted(finding: _Finding, *types: type) -> str:
    """Return the advice to drop quotes, if the text inside them would then be one of `types`."""
    if finding.received is None:
        return _say_null(finding)
    if not isinstance(finding.received, str):
        return ""
    try:
        return "Write it without quotes." if type(resolve_scalar(finding.received)) in types else ""
    except ScalarError as error:
        return error.remedy


def _say_null(finding: _Finding) -> str:
    field = finding.location.field
    optional = field is not None and not field.is_required()
    return "Give it a value, or remove the key." if optional else "Give it a value."


def _limit(sentence: str, name: str) -> Callable[[_Finding], Words]:
    def words(finding: _Finding) -> Words:
        limit = finding.context[name]
        shown = int(limit) if float(limit).is_integer() else limit
        return f"{sentence.format(shown)} Received: {finding.received}.", ""

    return words


def _too_few(finding: _Finding) -> Words:
    least = finding.context["min_length"]
    return f"must hold at least {least} {'item' if least == 1 else 'items'}. Received: {show(finding.received)}.", ""


def _empty_text(finding: _Finding) -> Words:
    return f"must not be empty. Received: {show(finding.received)}.", "Give it a value."


def _long_text(finding: _Finding) -> Words:
    longest, length = finding.context["max_length"], len(finding.received)
    return f"must be at most {longest} characters long. Received: {length} characters.", "Shorten it."


def _own_sentence(finding: _Finding) -> Words:
    """Return what one of our own validators said: `must …` or `may …`, without a full stop."""
    said = str(finding.context.get("error", finding.message))
    return f"{said}. Received: {show(finding.received)}.", ""


def _anything(finding: _Finding) -> Words:
    return f"is not valid ({_lower_first(finding.message)}). Received: {show(finding.received)}.", ""


def _lower_first(text: str) -> str:
    return text[:1].lower() + text[1:]


#: Pydantic's error types: https://docs.pydantic.dev/latest/errors/validation_errors/
_WORDS: Final[dict[str, Callable[[_Finding], Words]]] = {
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
