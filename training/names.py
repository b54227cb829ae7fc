"""Help with names that somebody mistyped."""

from __future__ import annotations

from collections.abc import Iterable

from training.spec.wording import find_nearest


def say_nearest(name: str, known: Iterable[str]) -> str:
    """Return a sentence that offers the nearest known name, or the known ones when none is near.

    >>> say_nearest("lable", ["label", "seed"])
    "Did you mean 'label'?"
    >>> say_nearest("x", ["label", "seed"])
    'Known: label, seed.'
    >>> say_nearest("x", [])
    ''
    """
    names = sorted(set(known))
    near = find_nearest(name, names)
    if near:
        return f"Did you mean {near!r}?"
    shown = ", ".join(names[:20])
    return f"Known: {shown}{', …' if len(names) > 20 else ''}." if names else ""
