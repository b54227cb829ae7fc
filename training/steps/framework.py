"""Which framework a file of the user's is written for, where the spec leaves it open: `engine: horovod` (ADR 9)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from training.entrypoint import find_file, parse_entrypoint
from training.errors import SpecError
from training.plan.framework import choose_framework
from training.spec.file import PipelineFile
from training.spec.train import HorovodTrain
from training.steps.imports import list_imports
from training.steps.model_source import find_source


def recognise_framework(file: PipelineFile) -> PipelineFile:
    """Return the pipeline with `train.framework` filled in by what the model file or the script imports.

    A file that is not found, or not Python, is left to the checks that say so.
    """
    train = file.spec.train
    if not isinstance(train, HorovodTrain) or train.framework is not None:
        return file
    try:
        source = _find_source(file)
    except SpecError:
        return file
    if source is None:
        return file
    chosen = train.model_copy(update={"framework": choose_framework(list_imports(source))})
    return replace(file, spec=file.spec.model_copy(update={"train": chosen}))


def _find_source(file: PipelineFile) -> Path | None:
    script = file.spec.train.script
    if script is None:
        return find_source(file)
    return find_file(parse_entrypoint(script, file.base_dir, "train.script")) if script.endswith(".py") else None
