"""What every step is given, and the record that makes a run folder readable on its own."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ConfigDict

from training.errors import spec_error
from training.run.folder import FileModel, RunFolder
from training.spec.file import PipelineFile
from training.spec.pipeline import PipelineSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class StepContext:
    """Given to each step of a pipeline.

    Attributes:
        file: The pipeline, overrides applied.
        run: Folder of the run.
        log: Takes a line for the person who watches.
        tags: Where the run comes from (`dag_id`, `dag_run_id`, `try_number`, …); they become tags of the MLflow run.
        map_index: Index of a mapped task; -1 for an ordinary one.
        try_number: Which try of the step this is, where somebody counts them, from 1.
        lease_s: Seconds after which a job that nobody follows any more ends itself; longer than whoever may come back
            to it needs.
    """

    file: PipelineFile
    run: RunFolder
    log: Callable[[str], None]
    tags: dict[str, str] = field(default_factory=dict)
    map_index: int = -1
    try_number: int = 0
    lease_s: float = 60.0

    @property
    def spec(self) -> PipelineSpec:
        """The spec of the pipeline."""
        return self.file.spec


class RunRecord(FileModel):
    """`run.json`: where a run came from, enough to resume it without the file that it was made from."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    run_id: str
    pipeline: str
    path: str | None
    base_dir: str
    spec: dict[str, Any]
    tags: dict[str, str] = {}
    created_at: float

    def to_file(self) -> PipelineFile:
        """Return the pipeline as it was when the run began."""
        return PipelineFile(
            spec=PipelineSpec.model_validate(self.spec),
            path=Path(self.path) if self.path else None,
            base_dir=Path(self.base_dir),
        )


def open_run(ctx: StepContext) -> RunRecord:
    """Return the record of the run, written now if this is its first step."""
    record = RunRecord.read(ctx.run.record)
    if record is None:
        record = RunRecord(
            run_id=ctx.run.run_id,
            pipeline=ctx.spec.name,
            path=str(ctx.file.path) if ctx.file.path else None,
            base_dir=str(ctx.file.base_dir),
            spec=ctx.spec.model_dump(mode="json", by_alias=True),
            tags=ctx.tags,
            created_at=time.time(),
        )
        record.write(ctx.run.record)
    return record


def read_run(run: RunFolder) -> RunRecord:
    """Return the record of an existing run.

    Raises:
        SpecError: There is no such run.
    """
    record = RunRecord.read(run.record)
    if record is None:
        raise spec_error("", f"there is no run {run.run_id} in {run.path.parent}.", "List them: ganger runs")
    return record
