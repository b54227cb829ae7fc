"""A pipeline as it was loaded: the spec and where it came from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from training.spec.pipeline import PipelineSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineFile:
    """A spec with the folder that its relative paths count from.

    Attributes:
        spec: What was asked for, overrides applied.
        path: The YAML file, as given; None for a spec that was written in Python.
        base_dir: Folder that relative paths in the spec (`data.source`, `model.entrypoint`, `train.script`) count from:
            that of the file, absolute.
    """

    spec: PipelineSpec
    path: Path | None = None
    base_dir: Path
