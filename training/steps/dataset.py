"""Finds the dataset that `prepare_data` left for the run."""

from __future__ import annotations

from pathlib import Path

from training.data.manifest import DatasetRef
from training.errors import PreflightError
from training.run.folder import RunFolder


def read_dataset_ref(run: RunFolder) -> Path:
    """Return the folder of the run's prepared dataset.

    Raises:
        PreflightError: `prepare_data` has not run.
    """
    ref = DatasetRef.read(run.dataset)
    if ref is None:
        raise PreflightError(f"{run.dataset} must name the prepared dataset. Run prepare_data first.")
    return Path(ref.path)
