"""What the MLflow run of a training says of its origin."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from training import settings
from training.plan.job import TrackingPlan
from training.plan.run_plan import RunPlan
from training.spec.rules import LEFT_TO_SCRIPT
from training.steps.context import StepContext
from training.tracking.mask import mask_uri


def plan_tracking(ctx: StepContext, plan: RunPlan) -> TrackingPlan:
    """Return what the tracker writes down: parameters are what was asked for, tags are what may change at a retry."""
    tags = {
        "ganger.run_id": ctx.run.run_id,
        "ganger.pipeline": ctx.spec.name,
        "ganger.plan": plan.digest,
        "mlflow.note.content": ctx.spec.description,
        **ctx.tags,
    }
    revision = read_git_revision(ctx.file.base_dir)
    if revision:
        tags["mlflow.source.git.commit"] = revision
    return TrackingPlan(
        tracking_uri=mask_uri(settings.read_tracking_uri()),
        experiment=ctx.spec.experiment_name,
        run_name=ctx.run.run_id,
        params=flatten_params(ctx),
        tags={name: value for name, value in tags.items() if value},
    )


def flatten_params(ctx: StepContext) -> dict[str, str]:
    """Return the parameters of the run: the blocks that decide what is learned, as dotted names.

    Without those that a script decides itself: their defaults would be taken for what it does.
    """
    blocks = ctx.spec.model_dump(mode="json", by_alias=True, include={"data", "model", "train", "cluster"})
    if ctx.spec.train.script is not None:
        blocks["train"] = {key: value for key, value in blocks["train"].items() if key not in LEFT_TO_SCRIPT}
    return dict(_flatten(blocks, ""))


def _flatten(value: Any, prefix: str) -> list[tuple[str, str]]:
    if isinstance(value, dict) and value:
        return [pair for key, inner in value.items() for pair in _flatten(inner, f"{prefix}.{key}" if prefix else key)]
    return [(prefix, str(value))]


def read_git_revision(folder: Path) -> str:
    """Return the commit that `folder` is at, with `-dirty` for uncommitted changes; empty outside a repository."""
    command = ["git", "-C", str(folder), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (FileNotFoundError, subprocess.TimeoutExpired):
        return ""
    return answer.stdout.strip() if answer.returncode == 0 else ""
