"""Values that came from Python (a hand-made DAG, a trigger form) as the plain data that YAML would have given."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from training.spec.document import MAX_DEPTH
from training.spec.mistake import KeyPath, Mistake
from training.spec.wording import show


def read_plain(value: object, path: KeyPath = ()) -> tuple[Any, list[Mistake]]:
    """Return `value` with mappings as dicts and tuples as lists, and a mistake for each part that YAML could not say.

    A spec ends in `job.json` and in Airflow's serialised DAG: there, sets have no order and dates no type.
    """
    mistakes: list[Mistake] = []
    return _read(value, path, mistakes.append), mistakes


def _read(value: object, path: KeyPath, report: Callable[[Mistake], None]) -> Any:
    if value is None or type(value) is bool or _is_number(value):
        return value
    if isinstance(value, str) and "\0" not in value and _is_unicode(value):
        return str(value)
    if isinstance(value, Mapping | list | tuple) and len(path) < MAX_DEPTH:
        return _read_collection(value, path, report)
    report(_refuse(value, path))
    return None


def _read_collection(
    value: Mapping[Any, Any] | list[Any] | tuple[Any, ...], path: KeyPath, report: Callable[[Mistake], None]
) -> Any:
    if not isinstance(value, Mapping):
        return [_read(item, (*path, index), report) for index, item in enumerate(value)]
    block = {}
    for key, item in value.items():
        if isinstance(key, str):
            block[str(key)] = _read(item, (*path, key), report)
        else:
            report(Mistake(path=path, message=f"a key must be text. Received: {show(key)}.", remedy="Use text keys."))
    return block


def _refuse(value: object, path: KeyPath) -> Mistake:
    if type(value) in (int, float):
        message = (
            f"must be a finite number of at most 64 bits. Received: {'a larger one' if value == value else 'NaN'}."
        )
        return Mistake(path=path, message=message, remedy="Write a smaller number, or None for none.")
    if isinstance(value, str):
        return Mistake(path=path, message="must be Unicode text without zero bytes.", remedy="Remove them.")
    if isinstance(value, Mapping | list | tuple):
        return Mistake(path=path[:4], message=f"is nested deeper than {MAX_DEPTH} levels.")
    message = f"must be text, a number, true, false, null, a list or a block. Received: {show(value)}."
    return Mistake(path=path, message=message, remedy="Turn it into one of these.")


def _is_number(value: object) -> bool:
    return (type(value) is int and -(2**63) <= value < 2**63) or (type(value) is float and math.isfinite(value))


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
