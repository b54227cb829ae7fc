"""What is written beside prepared rows, and how a run refers to them."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Literal

from pydantic import ConfigDict

from training.run.folder import FileModel

SCHEMA_VERSION: Literal[1] = 1
MANIFEST = "manifest.json"


class _File(FileModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ArrayFile(_File):
    """One `.npy` file of a dataset."""

    bytes: int
    sha256: str
    shape: tuple[int, ...]
    dtype: str


class DatasetManifest(_File):
    """A prepared dataset: what it holds and where it came from."""

    schema_version: Literal[1] = SCHEMA_VERSION
    source: str
    """`data.source` as it was given."""
    rows: int
    """Training rows."""
    validation_rows: int
    feature_shape: tuple[int, ...]
    """Shape of one row."""
    feature_dtype: str
    label_shape: tuple[int, ...]
    """Shape of one label; empty for a single value."""
    label_dtype: str
    classes: tuple[str, ...] = ()
    """Text of each class code, where labels were text."""
    features: tuple[str, ...] = ()
    """Names of the columns, for tables."""
    seed: int
    """Of the split."""
    validation_fraction: float
    notes: tuple[str, ...] = ()
    """What happened while reading, such as dropped rows."""
    files: dict[str, ArrayFile]
    """By name within the folder."""
    fingerprint: str
    """Over the content of all files: equal rows in the same split, equal fingerprint."""


class DatasetRef(_File):
    """Where the prepared rows of a run are."""

    path: str
    fingerprint: str
    rows: int
    validation_rows: int


def fingerprint_files(files: dict[str, ArrayFile]) -> str:
    """Return 16 hex digits that change when any file does."""
    text = "\n".join(f"{name} {file.sha256}" for name, file in sorted(files.items()))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def find_damage(folder: Path, manifest: DatasetManifest) -> str:
    """Return what is wrong with the files in `folder`, judging by presence and size; empty when nothing is."""
    for name, file in manifest.files.items():
        path = folder / name
        if not path.is_file():
            return f"{name} is missing"
        size = path.stat().st_size
        if size != file.bytes:
            return f"{name} has {size} bytes instead of {file.bytes}"
    return ""
