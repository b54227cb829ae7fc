"""How messages name values, choices and likely intentions. Pure; knows nothing of the spec."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Final

_LONGEST: Final = 60


def shorten(text: str) -> str:
    r"""Return text fit for one line of a message: unprintable characters escaped, the middle of long text left out.

    >>> shorten("a\tb")
    'a\\tb'
    """
    if not text.isprintable():
        text = repr(text)[1:-1]
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 15]}…{text[-14:]}"


def show(value: object) -> str:
    """Name a value that was received, with its type where that is what people get wrong.

    >>> show("32"), show(32), show(None), show([])
    ("the text '32'", 'the whole number 32', 'nothing (null)', 'an empty list')
    """
    match value:
        case None:
            return "nothing (null)"
        case bool():
            return "true" if value else "false"
        case int():
            return f"the whole number {shorten(str(value))}"
        case float():
            return f"the number {value}"
        case str():
            return f"the text '{shorten(value)}'" if value else "an empty text"
        case list() | tuple():
            return "a list" if value else "an empty list"
        case dict():
            return "a block of keys" if value else "an empty block"
        case _:
            return f"a Python {type(value).__name__}"


def list_words(words: Iterable[object], last: str = "or") -> str:
    """Join words for a sentence.

    >>> list_words(["a", "b", "c"])
    'a, b or c'
    """
    *head, tail = [str(word) for word in words] or ["nothing"]
    return f"{', '.join(head)} {last} {tail}" if head else tail


def find_nearest(word: str, known: Sequence[str]) -> str | None:
    """Return the known word that `word` is most likely a slip for, or None.

    >>> find_nearest("epoch", ["epochs", "seed"])
    'epochs'
    """
    folded = {name.lower().replace("-", "_"): name for name in known}
    near = difflib.get_close_matches(word[:_LONGEST].lower().replace("-", "_"), list(folded), n=1, cutoff=0.6)
    return folded[near[0]] if near else None
