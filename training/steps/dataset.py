"""Finds the dataset that `prepare_data` left for the run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from training.data.facts import read_dataset_facts
from training.data.manifest import DatasetRef
from training.errors import PreflightError
from training.plan.facts import DataFacts
from training.run.folder import RunFolder


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedDataset:
    """The rows of a run, whatever has become of their source since."""

    path: Path
    facts: DataFacts


def read_dataset(run: RunFolder) -> PreparedDataset:
    """Return the run's prepared dataset.

    Raises:
        PreflightError: `prepare_data` has not run, or its dataset is damaged.
    """
    ref = DatasetRef.read(run.dataset)
    facts = read_dataset_facts(Path(ref.path)) if ref else None
    if ref is None or facts is None:
        found = f"{ref.path}, which is damaged" if ref else "no such file"
        raise PreflightError(f"{run.dataset} must name a prepared dataset. Received: {found}. Run prepare_data first.")
    return PreparedDataset(path=Path(ref.path), facts=facts)
