"""`.csv` files: one header line, one label column, numbers in all others.

The separator is one of comma, semicolon, tab and bar, whichever cuts the header into most names. Where it is not the
comma, a comma in a number is its decimal point. Lines may end in CRLF, quoted cells may hold line breaks, and a byte
order mark is skipped. Whole-number labels and text labels are classes; any other number is a value to be predicted.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from training.data.rows import Rows
from training.data.sources.table_text import TableText, find_label, open_table, parse_number
from training.errors import Problem, SpecError, spec_error

#: What stands for an absent value, in lower case. `none` is not among them: it is a likely name of a class.
MISSING = frozenset({"", "na", "n/a", "nan", "null", "-", "?"})
_MOST_PROBLEMS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSource:
    """A table of which one column is the label.

    Attributes:
        path: The file.
        label: Name of the label column.
        missing: What to do with rows that lack a value.
    """

    path: Path
    label: str | None
    missing: Literal["fail", "drop"] = "fail"

    def read(self) -> Rows:
        """Return x of shape (rows, columns - 1), float32, and y of shape (rows,).

        Raises:
            SpecError: The file cannot be read as a table of numbers; every place is named, up to ten.
        """
        with open_table(self.path) as text:
            label = find_label(self.path, self.label, text.header)
            columns = _Columns(features=[array("d") for _ in text.header[1:]])
            for line, cells in text.records():
                self._take(columns, text, label, line, cells)
                if len(columns.problems) >= _MOST_PROBLEMS:
                    break
        if columns.problems:
            raise SpecError(columns.problems)
        return self._to_rows(columns, [name for index, name in enumerate(text.header) if index != label])

    def _take(self, columns: _Columns, text: TableText, label: int, line: int, cells: list[str]) -> None:
        if len(cells) != len(text.header):
            columns.problems.append(
                self._problem(line, f"must have {len(text.header)} cells, as the header has. Received: {len(cells)}.")
            )
            return
        absent = [text.header[index] for index, cell in enumerate(cells) if cell.strip().lower() in MISSING]
        if absent and self.missing == "drop":
            columns.dropped += 1
        elif absent:
            columns.problems.append(
                self._problem(
                    line,
                    f"must have a value in column {absent[0]!r}. Received: none.",
                    "Fill it, or set data.missing to drop.",
                )
            )
        else:
            numbers = list(self._parse(columns, text, label, line, cells))
            columns.append(numbers, cells[label].strip())

    def _parse(self, columns: _Columns, text: TableText, label: int, line: int, cells: list[str]) -> Iterator[float]:
        for index, cell in enumerate(cells):
            if index == label:
                continue
            number = parse_number(cell, decimal_comma=text.decimal_comma)
            if number is None:
                name = text.header[index]
                columns.problems.append(
                    self._problem(line, f"must have a finite number in column {name!r}. Received: {cell!r}.")
                )
            yield 0.0 if number is None else number

    def _problem(self, line: int, message: str, remedy: str = "") -> Problem:
        return Problem(field="data.source", message=message, remedy=remedy, file=str(self.path), line=line)

    def _to_rows(self, columns: _Columns, names: list[str]) -> Rows:
        if not columns.labels:
            what = (
                f"{columns.dropped} rows that all lack a value" if columns.dropped else "a header and nothing below it"
            )
            raise spec_error("data.source", f"must have at least 2 rows. Received: {what}, in {self.path}.")
        notes = (f"{columns.dropped} rows with a missing value were dropped.",) if columns.dropped else ()
        x = np.stack([np.frombuffer(column, dtype=np.float64) for column in columns.features], axis=1)
        return Rows(x=x.astype(np.float32), y=_read_labels(columns.labels), features=tuple(names), notes=notes)


@dataclass(slots=True)
class _Columns:
    """The table as far as it was read: numbers as 8 bytes each rather than as text."""

    features: list[array[float]]
    labels: list[str] = field(default_factory=list)
    dropped: int = 0
    problems: list[Problem] = field(default_factory=list)

    def append(self, numbers: list[float], label: str) -> None:
        """Add one row."""
        for column, number in zip(self.features, numbers, strict=True):
            column.append(number)
        self.labels.append(label)


def _read_labels(labels: list[str]) -> np.ndarray[Any, Any]:
    if all(label.lstrip("+-").isdecimal() for label in labels):
        return np.array([int(label) for label in labels], dtype=np.int64)
    numbers = [parse_number(label, decimal_comma=True) for label in labels]
    if None not in numbers:
        return np.array(numbers, dtype=np.float32)
    return np.array(labels)
