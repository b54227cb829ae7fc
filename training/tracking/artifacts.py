"""Which files of a run become artifacts of the MLflow run, so that its page explains itself; all of bounded size."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import yaml

from training.plan.render import render_plan
from training.plan.run_plan import RunPlan
from training.run.folder import JobFolder, RunFolder
from training.tracking.mask import mask_text

MAX_LOG_BYTES = 2 << 20
MAX_RANK_LOGS = 16


def texts_of(run: RunFolder, job: JobFolder) -> Iterator[tuple[str, str]]:
    """Yield artifact path and text of everything that the run's page shall hold; what does not exist is left out.

    `ganger/` has the spec as YAML, the plan, and the timeline of a pipeline; `logs/<job>/` the merged log and those of
    the first ranks, cut in the middle where they are long. Passwords in addresses are masked.
    """
    name = job.path.name
    for path, read in (
        ("ganger/spec.yaml", lambda: _read_spec(run.record)),
        ("ganger/plan.txt", lambda: _read_plan(run.plan)),
        (f"ganger/{name}.job.json", lambda: job.job.read_text(encoding="utf-8")),
        ("ganger/timeline.svg", lambda: job.timeline.read_text(encoding="utf-8")),
    ):
        if text := _read(read):
            yield path, mask_text(text, os.environ)
    logs = sorted((job.path / "logs").glob("rank-*.log"), key=lambda path: (len(path.name), path.name))
    for log in [job.merged_log, *logs[:MAX_RANK_LOGS]]:
        if log.exists():
            yield f"logs/{name}/{log.name}", mask_text(read_ends(log, MAX_LOG_BYTES), os.environ)


def _read(read: Callable[[], str]) -> str:
    try:
        return read()
    except (OSError, ValueError, KeyError):
        # A file that is absent or of another version: the page lacks it, the rest is there.
        return ""


def _read_spec(path: Path) -> str:
    spec = json.loads(path.read_text(encoding="utf-8"))["spec"]
    return yaml.safe_dump(spec, sort_keys=False, allow_unicode=True, width=120)


def _read_plan(path: Path) -> str:
    return render_plan(RunPlan.model_validate_json(path.read_bytes())) + "\n"


def read_ends(path: Path, limit: int) -> str:
    """Return the text of a file; where it is longer than `limit` bytes, its begin and end and what is missing."""
    with path.open("rb") as stream:
        size = stream.seek(0, 2)
        stream.seek(0)
        if size <= limit:
            return stream.read().decode(errors="replace")
        head = stream.read(limit // 4).decode(errors="replace")
        stream.seek(size - (limit - limit // 4))
        tail = stream.read().decode(errors="replace")
    return f"{head}\n… [{size - limit} of {size} bytes left out; all of it: {path.name} in the run folder]\n{tail}"
