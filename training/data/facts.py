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
        label_shape=manifest.label_shape,
        label_dtype=manifest.label_dtype,
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
        rows, held_out = plan_split(DIGITS_ROWS, data.validation_fraction)
        return DataFacts(
            rows=rows,
            validation_rows=held_out,
            feature_shape=(DIGITS_PIXELS,),
            feature_dtype="float32",
            classes=DIGITS_CLASSES,
            label_shape=(),
            label_dtype="int64",
            basis="what the set is known to hold",
        )
    if kind == "archive":
        return _read_archive(data, source_path(data, base_dir))
    if kind == "table":
        return _count_table(data, source_path(data, base_dir))
    return None


def _read_archive(data: DataSpec, path: Path) -> DataFacts | None:
    features, labels = read_header(path, "x"), read_header(path, "y")
    if features is None or not features.shape:
        return None
    rows, held_out = plan_split(features.shape[0], data.validation_fraction)
    return DataFacts(
        rows=rows,
        validation_rows=held_out,
        feature_shape=features.shape[1:],
        label_shape=labels.shape[1:] if labels else None,
        label_dtype=labels.prepared_dtype if labels else None,
        basis="the header of the file",
    )


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
    rows, held_out = plan_split(rows, data.validation_fraction)
    return DataFacts(
        rows=rows,
        validation_rows=held_out,
        feature_shape=(len(text.header) - 1,),
        feature_dtype="float32",
        label_shape=(),
        basis="counting the lines of the file",
    )
