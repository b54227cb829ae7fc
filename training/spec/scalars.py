"""What a plain (unquoted) YAML word means: the YAML 1.2 core schema, less what is ambiguous.

PyYAML reads by YAML 1.1, where `no` and `on` are booleans, `010` is 8, `1e-3` is text and `12:30` is 750. By YAML 1.2
(https://yaml.org/spec/1.2.2/#103-core-schema) only `true` and `false` are booleans and `1e-3` is a number. Dates, times
and `yes`/`no` are text here. What one version reads as a number and the other differently is refused.
"""

from __future__ import annotations

import math
import re
from typing import Final

Scalar = str | int | float | bool | None

_WORDS: Final[dict[str, bool | None]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]*)", re.ASCII)
_BASED = re.compile(r"0x[0-9a-fA-F]+|0o[0-7]+", re.ASCII)
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", re.ASCII)
_NOT_FINITE = re.compile(r"\.(?:nan|NaN|NAN)|[-+]?\.(?:inf|Inf|INF)", re.ASCII)
_AMBIGUOUS = re.compile(r"[-+]?(?:0[0-9]+|0b[01_]+|[0-9]+(?:_[0-9]+)+)", re.ASCII)
_LARGEST: Final = 2**63


class ScalarError(ValueError):
    """A word that has no single sensible meaning.

    Attributes:
        message: What must hold and what was received.
        remedy: What to write instead.
    """

    def __init__(self, message: str, remedy: str) -> None:
        self.message = message
        self.remedy = remedy
        super().__init__(message, remedy)


def resolve_scalar(text: str) -> Scalar:
    """Return the value of a plain YAML word.

    >>> [resolve_scalar(word) for word in ("32", "1e-3", "no", "true", "2024-01-01", "~")]
    [32, 0.001, 'no', True, '2024-01-01', None]

    Raises:
        ScalarError: The word is not a finite number, too large, or reads differently in YAML 1.1 and 1.2.
    """
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in "0123456789.+-":
        return text
    shown = text if len(text) <= 40 else f"{text[:40]}…"
    if _AMBIGUOUS.fullmatch(text):
        plain = text.replace("_", "").lstrip("+")
        number = plain if plain.startswith("0b") else re.sub(r"^(-?)0+(?=[0-9])", r"\1", plain)
        raise ScalarError(
            f"must be a number without leading zeros, `_` or `0b`. Received: {shown}.",
            "Put it in quotes." if number.startswith("0b") else f"Write {number[:40]}, or put it in quotes for a text.",
        )
    if _INTEGER.fullmatch(text) or _BASED.fullmatch(text):
        return _whole_number(text, shown)
    if _NOT_FINITE.fullmatch(text) or (_FLOAT.fullmatch(text) and math.isinf(float(text))):
        raise ScalarError(f"must be a finite number. Received: {shown}.", "Write a finite number, or null for none.")
    return float(text) if _FLOAT.fullmatch(text) else text


def _whole_number(text: str, shown: str) -> int:
    base = {"0x": 16, "0o": 8}.get(text[:2], 10)
    if len(text) < 40 and -_LARGEST <= (number := int(text, base)) < _LARGEST:
        return number
    raise ScalarError(
        f"must be a whole number of at most 64 bits. Received: {shown}.", "Put it in quotes if it is a text."
    )
