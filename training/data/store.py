"""Prepared datasets: `<home>/data/<key>/` with memory-mappable arrays and a manifest, made once for many runs."""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pydantic import ValidationError

from training.data.batches import SPLIT_STREAM, shuffle_rows
from training.data.identity import compose_rows_key, dataset_folder, hash_file
from training.data.manifest import (
    MANIFEST,
    ArrayFile,
    DatasetManifest,
    find_damage,
    fingerprint_files,
)
from training.data.rows import Array, Rows, check_rows, encode_labels, hash_rows, narrow_floats
from training.data.source import open_source
from training.plan.facts import plan_split
from training.run.atomic import new_folder, sweep_unfinished
from training.spec.pipeline import DataSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedDataset:
    """A dataset that is ready.

    Attributes:
        path: Its folder.
        manifest: What it holds.
        reused: Whether it was there already.
    """

    path: Path
    manifest: DatasetManifest
    reused: bool


def prepare_dataset(data: DataSpec, base_dir: Path, home: Path, log: Callable[[str], None]) -> PreparedDataset:
    """Return the prepared dataset of `data`, made now unless an earlier run made it.

    Of several that prepare the same dataset at once, one works and the others wait and reuse. A function is called
    each time, since it may read what nobody sees from outside; its dataset is reused when it returned the same rows.

    Raises:
        SpecError: The source cannot be read, or its rows cannot be trained on.
        InfrastructureError: The disk is full; nothing is left behind.
    """
    path, rows = dataset_folder(data, base_dir, home), None
    if path is None:
        rows = _read(data, base_dir)
        path = home / "data" / compose_rows_key(data, hash_rows(rows))
    path.parent.mkdir(parents=True, exist_ok=True)
    with _lock(path, log):
        manifest = read_prepared(path, log)
        if manifest is not None:
            log(f"reusing the prepared dataset {path} (same {'rows' if rows else 'source'}, same split)")
            return PreparedDataset(path=path, manifest=manifest, reused=True)
        sweep_unfinished(path.parent, path.name)
        manifest = _write(path, data, rows or _read(data, base_dir))
        return PreparedDataset(path=path, manifest=manifest, reused=False)


def read_prepared(path: Path, log: Callable[[str], None]) -> DatasetManifest | None:
    """Return the manifest of the dataset in `path`, or None when it is absent, or damaged, which is said aloud."""
    try:
        manifest = DatasetManifest.read(path / MANIFEST)
        damage = find_damage(path, manifest) if manifest else ""
    except ValidationError:
        manifest, damage = None, f"{MANIFEST} is not readable"
    if damage:
        log(f"the prepared dataset {path} is damaged ({damage}); it is made anew")
        return None
    return manifest


def split_rows(rows: Rows, validation_fraction: float, seed: int) -> dict[str, Array]:
    """Return the arrays of the training and the validation part; in each, the rows keep their order.

    Raises:
        SpecError: A part would be empty.
    """
    train, _ = plan_split(len(rows.x), validation_fraction)
    order = shuffle_rows(seed, SPLIT_STREAM, len(rows.x))
    parts = {"train": np.sort(order[:train]), "validation": np.sort(order[train:])}
    return {
        f"{part}_{name}.npy": array[chosen]
        for part, chosen in parts.items()
        for name, array in (("x", rows.x), ("y", rows.y))
    }


def _read(data: DataSpec, base_dir: Path) -> Rows:
    rows = encode_labels(open_source(data, base_dir).read())
    check_rows(rows, data.source)
    return narrow_floats(rows)


def _write(path: Path, data: DataSpec, rows: Rows) -> DatasetManifest:
    arrays = split_rows(rows, data.validation_fraction, data.seed)
    with new_folder(path) as folder:
        files = {name: _write_array(folder / name, array) for name, array in arrays.items()}
        manifest = DatasetManifest(
            source=data.source,
            rows=len(arrays["train_x.npy"]),
            validation_rows=len(arrays["validation_x.npy"]),
            feature_shape=rows.x.shape[1:],
            feature_dtype=str(rows.x.dtype),
            label_shape=rows.y.shape[1:],
            label_dtype=str(rows.y.dtype),
            classes=rows.classes,
            features=rows.features,
            seed=data.seed,
            validation_fraction=data.validation_fraction,
            notes=rows.notes,
            files=files,
            fingerprint=fingerprint_files(files),
        )
        manifest.write(folder / MANIFEST)
    return manifest


def _write_array(path: Path, array: Array) -> ArrayFile:
    whole = np.ascontiguousarray(array)
    with path.open("wb") as stream:  # not numpy.save: on a full disk it raises an OSError without its number
        np.lib.format.write_array_header_1_0(stream, np.lib.format.header_data_from_array_1_0(whole))
        stream.write(whole.data)
    return ArrayFile(bytes=path.stat().st_size, sha256=hash_file(path), shape=array.shape, dtype=str(array.dtype))


@contextlib.contextmanager
def _lock(path: Path, log: Callable[[str], None]) -> Iterator[None]:
    with path.with_name(f".{path.name}.lock").open("w") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            log(f"waiting for another process that prepares {path}")
            fcntl.flock(stream, fcntl.LOCK_EX)
        yield  # closing the file unlocks it, also when the process dies
