"""A prepared dataset, opened for reading. Needs NumPy only: this runs in every engine environment."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pydantic import ValidationError

from training.data.manifest import MANIFEST, DatasetManifest, find_damage
from training.data.rows import Array
from training.errors import InfrastructureError

_HEADER_BYTES = 128  # of a .npy file without elements, which cannot be mapped


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """Memory-mapped rows: reading a row reads that row from the disk and nothing else.

    Attributes:
        manifest: What they are.
        x: Training features, shape (rows, ...).
        y: Training labels, shape (rows, ...).
        validation_x: Features of the held-out rows.
        validation_y: Labels of the held-out rows.
    """

    manifest: DatasetManifest
    x: Array
    y: Array
    validation_x: Array
    validation_y: Array

    @property
    def bytes(self) -> int:
        """Size of the training part."""
        return self.x.nbytes + self.y.nbytes


def open_dataset(folder: Path) -> Dataset:
    """Open the dataset that `prepare_data` left in `folder`.

    Raises:
        InfrastructureError: It is not there or damaged.
    """
    try:
        manifest = DatasetManifest.read(folder / MANIFEST)
        damage = find_damage(folder, manifest) if manifest else "there is none"
    except ValidationError as error:
        manifest, damage = None, f"{MANIFEST} is not readable: {error}"
    if manifest is None or damage:
        raise InfrastructureError(f"{folder} must hold a prepared dataset. Received: {damage}. Run prepare_data again.")
    return Dataset(
        manifest=manifest,
        x=_map(folder / "train_x.npy"),
        y=_map(folder / "train_y.npy"),
        validation_x=_map(folder / "validation_x.npy"),
        validation_y=_map(folder / "validation_y.npy"),
    )


def _map(path: Path) -> Array:
    array: Array = np.load(path, mmap_mode="r" if path.stat().st_size > _HEADER_BYTES else None, allow_pickle=False)
    return array
