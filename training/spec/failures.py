"""Failure patterns of a spec, and which regular expressions may be one."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from re import _constants, _parser  # type: ignore[attr-defined]  # as `sre_parse` they warn that they moved here
from typing import Annotated, Any, Final

from pydantic import AfterValidator, Field

from training.policy.patterns import TreatAs
from training.spec.base import SpecModel

_REPEATS: Final = (_constants.MAX_REPEAT, _constants.MIN_REPEAT)
#: What a group of these has taken it never gives back, so that a repeat around it has nothing to try out.
_TAKES_FOR_GOOD: Final = (_constants.ATOMIC_GROUP, _constants.POSSESSIVE_REPEAT)


def check_pattern(text: str) -> str:
    """Return `text` if it is a regular expression that can be looked for.

    Raises:
        ValueError: It is none, it is found in everything, or it may take for ever.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            found_in_nothing = re.compile(text).search("")
        except re.error as error:
            place = f" at character {error.pos + 1}" if error.pos is not None else ""
            raise ValueError(f"must be a regular expression, and this has {_name(error.msg)}{place}") from error
        except Warning as error:
            raise ValueError(f"must be a regular expression of one meaning ({str(error).lower()})") from error
        except (OverflowError, RecursionError) as error:
            raise ValueError("must be a regular expression of reasonable size") from error
    if found_in_nothing:
        raise ValueError("must not match the empty text, which is found in what every failure says")
    if _repeats_a_repeat(_parser.parse(text)):
        raise ValueError(
            "must not repeat what has a repeat in it, as `(a+)+` does: looking for it may take for ever; "
            "the words alone are enough"
        )
    return text


def _name(problem: str) -> str:
    """Return what `re` says in a form that a sentence can go on with."""
    return problem if problem.startswith(("unterminated", "unbalanced", "multiple")) else f"a mistake ({problem})"


def _repeats_a_repeat(node: Any, inside: bool = False) -> bool:
    """Whether a repeat without an upper limit has another one in it: the usual way to an exponential search."""
    for operation, argument in _iterate_operations(node):
        endless = operation in _REPEATS and argument[1] is _constants.MAXREPEAT
        reaches = inside and operation not in _TAKES_FOR_GOOD
        if (endless and inside) or _repeats_a_repeat(argument, reaches or endless):
            return True
    return False


def _iterate_operations(node: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the operations of a parsed pattern, each with its argument, whatever lists and tuples they are kept in."""
    if isinstance(node, _parser.SubPattern):
        yield from node.data
    elif isinstance(node, list | tuple):
        for part in node:
            yield from _iterate_operations(part)


#: Long enough for any words; short enough for the parser not to run out of stack.
Pattern = Annotated[str, Field(min_length=1, max_length=300), AfterValidator(check_pattern)]


class FailurePatternSpec(SpecModel):
    """What the words of a failed rank mean. Tried in order, before what Ganger knows by itself."""

    pattern: Pattern
    """Regular expression (of Python), looked for in the rank's exception (`package.Class: text`) and last 20 lines."""
    treat_as: TreatAs
    """Class of the failure, which decides about restarts (docs/guides/failures.md)."""
