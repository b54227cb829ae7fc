"""A mistake at a place inside a document, before it is known which file and line that place has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from training.spec.wording import shorten

Key = str | int
KeyPath = tuple[Key, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistake:
    """What is wrong with the value at `path`.

    Attributes:
        path: Keys and list indices from the root, in YAML names.
        message: What must hold and what was received.
        remedy: What to do about it; may be empty.
        line: Line in the text, from 1; 0 to look it up from `path`.
    """

    path: KeyPath
    message: str
    remedy: str = ""
    line: int = 0


def render_path(path: Sequence[Key]) -> str:
    """Return a path as users write it.

    >>> render_path(("cluster", "hosts", 1, "address"))
    'cluster.hosts[1].address'
    """
    text = ""
    for key in path:
        text += f"[{key}]" if isinstance(key, int) else f".{shorten(key)}"
    return text.removeprefix(".")


def parse_path(text: str) -> KeyPath:
    """Return the keys of a dotted path; the inverse of `render_path` for paths without list indices.

    >>> parse_path("train.epochs")
    ('train', 'epochs')
    """
    return tuple(text.split("."))
