"""Rows as a source gives them, and what must hold for them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from training.errors import Problem, SpecError

Array = NDArray[Any]

_CHUNK_ROWS = 65536


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Features and labels, row by row.

    Attributes:
        x: Features, shape (rows, ...).
        y: Labels, shape (rows,) or (rows, ...).
        classes: Text of each class where labels were text: label k stands for `classes[k]`.
        features: Names of the columns, for tables.
        notes: What a person should know about the reading, one sentence each.
    """

    x: Array
    y: Array
    classes: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def encode_labels(rows: Rows) -> Rows:
    """Replace text labels by class codes: the place of the text among all texts, sorted.

    >>> encode_labels(Rows(x=np.zeros((3, 1)), y=np.array(["b", "a", "b"]))).y.tolist()
    [1, 0, 1]
    """
    if rows.y.dtype.kind not in "US":
        return rows
    classes, codes = np.unique(rows.y.astype(str), return_inverse=True)
    return replace(rows, y=codes.reshape(rows.y.shape).astype(np.int64), classes=tuple(classes.tolist()))


def narrow_floats(rows: Rows) -> Rows:
    """Turn 64-bit floats into the 32 bits that the engines compute with; all other types stay."""
    wide = np.dtype(np.float64)
    return replace(
        rows,
        x=rows.x.astype(np.float32) if rows.x.dtype == wide else rows.x,
        y=rows.y.astype(np.float32) if rows.y.dtype == wide else rows.y,
    )


def hash_rows(rows: Rows) -> str:
    """Return the SHA-256 over shapes, types, values and class texts, in hex. `rows` have passed `check_rows`."""
    digest = hashlib.sha256(json.dumps([rows.classes, rows.features]).encode())
    for array in (rows.x, rows.y):
        digest.update(f"{array.dtype.str} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).reshape(-1).data)
    return digest.hexdigest()


def check_rows(rows: Rows, source: str) -> None:
    """Check shapes, types and values.

    Raises:
        SpecError: With all that is wrong.
    """
    problems = list(_find_problems(rows, source))
    if problems:
        raise SpecError(problems)


def _find_problems(rows: Rows, source: str) -> Iterator[Problem]:
    def problem(message: str, remedy: str = "") -> Problem:
        return Problem(field="data.source", message=message, remedy=remedy)

    for name, array in (("x", rows.x), ("y", rows.y)):
        if array.dtype.kind not in "biuf":
            yield problem(f"{name} must hold numbers. Received: dtype {array.dtype} from {source}.")
        elif array.ndim == 0:
            yield problem(f"{name} must have one entry a row. Received: a single value from {source}.")
        elif 0 in array.shape[1:]:
            yield problem(f"{name} must have at least one value a row. Received: shape {array.shape} from {source}.")
        else:
            bad = find_non_finite(array)
            if bad is not None:
                yield problem(
                    f"{name} must hold finite numbers. Received: {array[bad]} in row {bad[0]}"
                    f"{f', place {list(bad[1:])}' if bad[1:] else ''} (from 0) of {source}.",
                    "Drop or repair such rows before training: one of them makes every loss NaN.",
                )
    if rows.x.ndim and rows.y.ndim and len(rows.x) != len(rows.y):
        yield problem(f"x and y must have equally many rows. Received: {len(rows.x)} and {len(rows.y)} from {source}.")
    elif rows.x.ndim and len(rows.x) < 2:
        yield problem(f"must have at least 2 rows. Received: {len(rows.x)} from {source}.")


def find_non_finite(array: Array) -> tuple[int, ...] | None:
    """Return the place of the first NaN or infinity, or None; looks at a part of the rows at a time."""
    if array.dtype.kind != "f":
        return None
    for start in range(0, len(array), _CHUNK_ROWS):
        bad = ~np.isfinite(array[start : start + _CHUNK_ROWS])
        if bad.any():
            first = np.argwhere(bad)[0]
            return (start + int(first[0]), *(int(i) for i in first[1:]))
    return None
