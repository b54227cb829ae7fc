"""What can be known of a data source in a moment, for `ganger plan`. Imports no NumPy: a plan must answer at once."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from training.data.identity import choose_kind, dataset_folder, source_path
from training.data.manifest import MANIFEST, DatasetManifest, find_damage
from training.data.sources.archive_header import read_header
from training.data.sources.table_text import find_label, open_table
from training.errors import SpecError
from training.plan.facts import DataFacts, plan_split
from training.spec.pipeline import DataSpec

DIGITS_ROWS, DIGITS_PIXELS, DIGITS_CLASSES = 1797, 64, 10
#: Larger tables are not counted for a plan: counting reads all of the file.
_LARGEST_TABLE_BYTES = 64 * 2**20


def read_facts(data: DataSpec, base_dir: Path, home: Path) -> DataFacts | None:
    """Return what is known of the rows without reading them, or None when only preparing them can tell.

    A dataset that was prepared before is known exactly. Otherwise: a built-in set by heart, an archive by its headers,
    a table by counting its records. A function is never known: it may return other rows each time it is called.

    Raises:
        SpecError: There is no such source, its label column is not there, or its rows cannot be split as asked.
    """
    return _read_prepared(data, base_dir, home) or _read_source(data, base_dir)


def read_dataset_facts(folder: Path) -> DataFacts | None:
    """Return what a prepared dataset holds, or None where it is damaged or was written by another version."""
    try:
        manifest = DatasetManifest.read(folder / MANIFEST)
    except ValidationError:
        return None  # preparing makes it anew and says so
    if manifest is None or find_damage(folder, manifest):
        return None
    return DataFacts(
        rows=manifest.rows,
        validation_rows=manifest.validation_rows,
        feature_shape=manifest.feature_shape,
        feature_dtype=manifest.feature_dtype,
        classes=len(manifest.classes) or (DIGITS_CLASSES if manifest.source == "digits" else None),
        basis="the prepared dataset",
    )


def _read_prepared(data: DataSpec, base_dir: Path, home: Path) -> DataFacts | None:
    if not (home / "data").is_dir():
        return None  # spares hashing the source
    folder = dataset_folder(data, base_dir, home)
    return None if folder is None else read_dataset_facts(folder)


def _read_source(data: DataSpec, base_dir: Path) -> DataFacts | None:
    kind = choose_kind(data)
    if kind == "digits":
        return _split(data, DIGITS_ROWS, (DIGITS_PIXELS,), "what the set is known to hold", "float32", DIGITS_CLASSES)
    if kind == "archive":
        header = read_header(source_path(data, base_dir), "x")
        return (
            _split(data, header.shape[0], header.shape[1:], "the header of the file")
            if header and header.shape
            else None
        )
    if kind == "table":
        return _count_table(data, source_path(data, base_dir))
    return None


def _count_table(data: DataSpec, path: Path) -> DataFacts | None:
    if not path.is_file():
        return None
    countable = data.missing != "drop" and path.stat().st_size <= _LARGEST_TABLE_BYTES
    try:
        with open_table(path) as text:
            rows = sum(1 for _ in text.records()) if countable else None
    except SpecError:
        return None  # preparing the data names every mistake of the file
    find_label(path, data.label, text.header)
    if rows is None:
        return None
    return _split(data, rows, (len(text.header) - 1,), "counting the lines of the file", "float32")


def _split(
    data: DataSpec, rows: int, shape: tuple[int, ...], basis: str, dtype: str | None = None, classes: int | None = None
) -> DataFacts:
    train, validation = plan_split(rows, data.validation_fraction)
    return DataFacts(
        rows=train, validation_rows=validation, feature_shape=shape, feature_dtype=dtype, classes=classes, basis=basis
    )
