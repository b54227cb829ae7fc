"""What pydantic found, as mistakes in the words of the pipeline file. `sentences` has the words themselves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from pydantic import ValidationError

from training.spec.fields import Model, find_tag, list_members, locate
from training.spec.mistake import Mistake
from training.spec.sentences import Finding, choices_of, describe, wrong_choice
from training.spec.wording import list_words

#: How many of pydantic's errors are put into words: more than anybody reads, few enough for hostile input.
MOST_MISTAKES: Final = 100


def find_mistakes(value: Any, root: Model) -> list[Mistake]:
    """Return everything that keeps plain data from being a `root`; empty when nothing does."""
    try:
        root.model_validate(value, by_alias=True, by_name=False)
    except ValidationError as error:
        return explain_validation(error, root)
    return []


def explain_validation(error: ValidationError, root: Model) -> list[Mistake]:
    """Return pydantic's errors about a `root` as mistakes, in pydantic's order, a bounded number of them."""
    mistakes: list[Mistake] = []
    for details in error.errors(include_url=False)[: MOST_MISTAKES + 1]:
        finding = Finding(
            root=root,
            location=locate(root, details["loc"]),
            received=details["input"],
            context=details.get("ctx", {}),
            message=details["msg"],
        )
        mistakes.extend(_explain(details["type"], finding))
    return mistakes


def _explain(kind: str, finding: Finding) -> list[Mistake]:
    if kind in ("union_tag_not_found", "union_tag_invalid"):
        return _explain_untagged(finding)
    if kind == "too_short" and len(finding.received) >= finding.context["min_length"]:
        return []  # pydantic counts the valid items only; those that are not valid are reported themselves
    message, remedy = describe(kind, finding)
    return [Mistake(path=finding.location.path, message=message, remedy=remedy)]


def _explain_untagged(finding: Finding) -> list[Mistake]:
    """Report the key that chooses the variant, and whatever is wrong whichever variant would be chosen."""
    tags = {tag[1]: model for model in list_members(finding.location.annotation) if (tag := find_tag(model))}
    block, key = finding.received, finding.context["discriminator"].strip("'")
    if key in block:
        message, remedy = wrong_choice(block[key], tuple(tags))
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
        choices = [choice for model in tags.values() for choice in choices_of(model, name)]
        if choices:
            message, remedy = wrong_choice(block[name], tuple(dict.fromkeys(choices)))
            mistake = Mistake(path=mistake.path, message=message, remedy=remedy)
        common.append(mistake)
    return common


def _guess_tag(block: Mapping[str, Any], key: str, tags: Mapping[str, Model]) -> str:
    """Advise the tag that the other keys speak for, if they speak for a single one."""
    for name, value in block.items():
        owners = [tag for tag, model in tags.items() if value in choices_of(model, name)]
        if len(owners) == 1:
            return f"Add `{key}: {owners[0]}`, which has the {name} {value}."
    return f"Add `{key}:`."
