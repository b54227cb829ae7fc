"""The text of a table: encoding, separator, header and records with their lines. Imports no NumPy: plans use it."""

from __future__ import annotations

import contextlib
import csv
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from training.errors import Problem, SpecError, spec_error
from training.names import say_nearest

_SEPARATORS = ",;\t|"
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class TableText:
    """An open table behind its header.

    Attributes:
        path: The file.
        header: Names of the columns.
        separator: What stands between cells.
        stream: The rest of the file.
        first_line: Line on which the rest begins, from 1.
    """

    path: Path
    header: tuple[str, ...]
    separator: str
    stream: TextIO
    first_line: int

    @property
    def decimal_comma(self) -> bool:
        """Whether a comma in a number can only be its decimal point."""
        return self.separator != ","

    def records(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the line on which each record begins and its cells; empty lines are passed over.

        Raises:
            SpecError: A quote is not closed or the text is not UTF-8.
        """
        reader = csv.reader(self.stream, delimiter=self.separator, strict=True)
        line = self.first_line
        try:
            for cells in reader:
                if cells:
                    yield line, cells
                line = self.first_line + reader.line_num
        except (csv.Error, UnicodeDecodeError) as error:
            raise _unreadable(self.path, line, error) from error


@contextlib.contextmanager
def open_table(path: Path) -> Iterator[TableText]:
    """Open a table and read its header.

    Raises:
        SpecError: The file is empty, not UTF-8, has no header, or one with blank or repeated names.
    """
    with path.open(encoding="utf-8-sig", newline="") as stream:
        separator, header, lines = _read_header(path, stream)
        _check_header(path, header)
        yield TableText(path=path, header=header, separator=separator, stream=stream, first_line=lines + 1)


def find_label(path: Path, label: str | None, header: Sequence[str]) -> int:
    """Return the place of the label column in `header`.

    Raises:
        SpecError: There is no such column, names the nearest one; or no column beside it.
    """
    if label is None:
        raise spec_error(
            "data.label", f"must name the label column of {path}. Received: none.", say_nearest("", header)
        )
    if label not in header:
        raise spec_error("data.label", f"must be a column of {path}. Received: {label!r}.", say_nearest(label, header))
    if len(header) < 2:
        raise spec_error("data.source", f"must have a column beside the label. Received: only {label!r} in {path}.")
    return header.index(label)


def parse_number(cell: str, *, decimal_comma: bool) -> float | None:
    """Return the finite number that `cell` holds, or None.

    >>> parse_number(" 1,5 ", decimal_comma=True)
    1.5
    >>> parse_number("1,5", decimal_comma=False) is parse_number("inf", decimal_comma=False) is None
    True
    """
    text = cell.strip()
    if decimal_comma and "." not in text:
        text = text.replace(",", ".", 1)
    if not _NUMBER.fullmatch(text):
        return None
    number = float(text)
    return number if math.isfinite(number) else None


def _read_header(path: Path, stream: TextIO) -> tuple[str, tuple[str, ...], int]:
    """Return separator, names, and the number of lines of the header; leaves `stream` behind it."""
    try:
        first = stream.readline()
        while first.count('"') % 2 and (more := stream.readline()):
            first += more
        readings = {mark: next(csv.reader(first.splitlines(keepends=True), delimiter=mark), []) for mark in _SEPARATORS}
    except (csv.Error, UnicodeDecodeError) as error:
        raise _unreadable(path, 1, error) from error
    separator = max(_SEPARATORS, key=lambda mark: len(readings[mark]))
    names = tuple(name.strip() for name in readings[separator])
    return separator, names, max(1, len(first.splitlines()))


def _check_header(path: Path, header: tuple[str, ...]) -> None:
    def problem(message: str, remedy: str = "") -> Problem:
        return Problem(field="data.source", message=message, remedy=remedy, file=str(path), line=1)

    problems = []
    if not header:
        raise SpecError([problem("must begin with a line of column names. Received: an empty line or file.")])
    if all(parse_number(name, decimal_comma=True) is not None for name in header):
        raise SpecError(
            [
                problem(
                    f"must begin with a line of column names. Received: numbers only, {', '.join(header[:5])}.",
                    "Add a header.",
                )
            ]
        )
    blank = [index + 1 for index, name in enumerate(header) if not name]
    if blank:
        problems.append(
            problem(f"must give every column a name. Received: none for column {', '.join(map(str, blank))}.")
        )
    repeated = sorted({name for name in header if name and header.count(name) > 1})
    if repeated:
        problems.append(
            problem(f"must give every column a name of its own. Received: {', '.join(repeated)} more than once.")
        )
    if problems:
        raise SpecError(problems)


def _unreadable(path: Path, line: int, error: Exception) -> SpecError:
    if isinstance(error, UnicodeDecodeError):
        message = f"must be UTF-8 text. Received: bytes that are not, near this line: {error.reason}."
        return SpecError(
            [Problem(field="data.source", message=message, remedy="Save it as UTF-8.", file=str(path), line=line)]
        )
    message = f"must be readable as CSV. Received: a record that is not: {error}."
    return SpecError([Problem(field="data.source", message=message, file=str(path), line=line)])
