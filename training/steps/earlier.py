"""Sets a finished training of a run aside, so that the run can train anew: nothing of it may leak into the next one."""

from __future__ import annotations

import shutil
from pathlib import Path

from training.run.folder import RunFolder
from training.run.standing import Standing, read_standing
from training.steps.context import StepContext

#: What was made of the trained model, and must be made of the next one again.
_DEPENDENT_STEPS = ("evaluate", "register_model")


def set_training_aside(ctx: StepContext) -> bool:
    """Set the run's training aside if it has succeeded; return whether it had.

    Its result, logs, model and the reference to its MLflow run are kept in `earlier/N/`, with what `evaluate` and
    `register_model` told of it; its checkpoints are removed. Safe to repeat: the job itself is moved last, and tells
    until then that there is something to do.
    """
    run = ctx.run
    job = run.job("train", ctx.map_index)
    if read_standing(job) is not Standing.SUCCEEDED:
        return False
    kept = run.set_aside(_choose_number(run, job.path.name))
    for name in _DEPENDENT_STEPS:
        _move(run.job(name, ctx.map_index).path, kept.job(name, ctx.map_index).path)
    _move(run.model, kept.model)
    _move(run.tracking, kept.tracking)
    _move(run.plan, kept.plan)
    shutil.rmtree(run.checkpoints, ignore_errors=True)
    _move(job.path, kept.job("train", ctx.map_index).path)
    ctx.log(f"{job.job_id} has succeeded before: its model and logs are kept in {kept.path}, and it trains anew.")
    return True


def _choose_number(run: RunFolder, name: str) -> int:
    """Return the number after those of the trainings that were set aside wholly."""
    number = 1
    while (run.set_aside(number).path / "jobs" / name).exists():
        number += 1
    return number


def _move(source: Path, target: Path) -> None:
    if source.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        source.replace(target)
