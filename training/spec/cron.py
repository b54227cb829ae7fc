"""Cron expressions, as far as a spec can tell a wrong one without Airflow: five fields in range, or a preset."""

from __future__ import annotations

import re
from typing import Final

#: The presets of Airflow 3: https://airflow.apache.org/docs/apache-airflow/stable/authoring-and-scheduling/cron.html
PRESETS: Final = ("@once", "@continuous", "@hourly", "@daily", "@weekly", "@monthly", "@quarterly", "@yearly")

_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
#: Name, smallest number, largest number, names of the values from the smallest number on.
_FIELDS: Final[tuple[tuple[str, int, int, tuple[str, ...]], ...]] = (
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day of the month", 1, 31, ()),
    ("month", 1, 12, _MONTHS),
    ("day of the week", 0, 7, _DAYS),
)
_ITEM = re.compile(r"(?:\*|(?P<first>\w+)(?:-(?P<last>\w+))?)(?:/(?P<step>[0-9]+))?", re.ASCII)


def check_cron(text: str) -> str:
    """Return a cron expression unchanged, if it is one.

    >>> check_cron("0 2 * * mon-fri")
    '0 2 * * mon-fri'

    Raises:
        ValueError: A field is missing, out of range, or not understood.
    """
    if text.startswith("@"):
        if text not in PRESETS:
            raise ValueError(f"must be a preset that Airflow knows: {', '.join(PRESETS)}")
        return text
    fields = text.split()
    if len(fields) != len(_FIELDS):
        raise ValueError("must be a cron expression of five fields (minute, hour, day, month, day of the week)")
    for field, (name, low, high, names) in zip(fields, _FIELDS, strict=True):
        for item in field.split(","):
            if not _is_item(item, low, high, names):
                raise ValueError(f"must be a cron expression; its {name} takes {low} to {high}, not '{item[:40]}'")
    return text


def _is_item(item: str, low: int, high: int, names: tuple[str, ...]) -> bool:
    """Tell whether one comma-separated part of a field is `*`, a number or a range, with or without a step.

    `L` (last day) and `2#1` (first Tuesday) of Airflow's parser go through as they are.
    """
    if item.upper() == "L" or re.fullmatch(r"\w{1,3}#[1-5L]", item, re.ASCII):
        return high in (7, 31)
    match = _ITEM.fullmatch(item)
    if match is None or (match["step"] is not None and not match["step"].strip("0")):
        return False
    numbers = [_number(match[part], low, names) for part in ("first", "last") if match[part] is not None]
    return all(low <= number <= high for number in numbers)


def _number(word: str, low: int, names: tuple[str, ...]) -> int:
    if word.isdecimal() and len(word) <= 3:
        return int(word)
    return low + names.index(word.lower()) if word.lower() in names else -1
