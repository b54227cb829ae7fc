"""Brings up one stage of a pipeline: a process of the gang that the step `train` then has train.

All stages live under the supervisor of the training, which the first one starts. Each begins when its turn is called,
so that they come up in their order (ADR 11).
"""

from __future__ import annotations

from typing import Any

from training.errors import LaunchError
from training.plan.ranks import name_stage, rank_stage
from training.run.folder import JobFolder
from training.run.follow import follow_rank, log_size, raise_for
from training.run.standing import Standing, read_standing
from training.run.turn import call_turn, read_turn
from training.steps.context import StepContext
from training.steps.job import claim_job
from training.steps.train import NAME, start_training


def start_stage(ctx: StepContext, stage: int) -> dict[str, Any]:
    """Bring up `stage`, and return once it serves.

    A stage that the spec of this run does not have is none. Where the gang has ended meanwhile, it is started again,
    with the stages before this one; a training that has succeeded is left as it is.

    Returns:
        `stage` and its `rank`; nothing where there is no such stage.

    Raises:
        GangerError: The gang has failed, or could not be started; or an earlier stage is missing.
    """
    if ctx.spec.train.strategy != "pipeline" or stage >= ctx.spec.workers:
        ctx.log(f"This run has no {name_stage(stage)}: nothing is brought up.")
        return {}
    folder, rank = ctx.run.job(NAME, ctx.map_index), rank_stage(stage)
    standing = read_standing(folder)
    if standing is Standing.SUCCEEDED:
        ctx.log("The training has succeeded. If it is to train anew, the task that trains brings the stages up itself.")
    elif standing is Standing.ACTIVE:
        check_turn(read_turn(folder), stage)
        claim_job(ctx, NAME)
        call_turn(folder, rank)
        _await_ready(ctx, folder, stage)
    else:
        seen = log_size(folder, rank)  # what earlier attempts left
        start_training(ctx, turn=rank)
        _await_ready(ctx, folder, stage, offset=seen)
    return {"stage": stage, "rank": rank}


def check_turn(called: int | None, stage: int) -> None:
    """Check that the stages before `stage` were brought up (K31).

    Raises:
        LaunchError: One is missing.
    """
    if called is not None and called < stage:
        raise LaunchError(
            f"{name_stage(stage)} must come after {name_stage(stage - 1)}. Received: a pipeline in which "
            f"{name_stage(called)} was not brought up. Put its task in between."
        )


def _await_ready(ctx: StepContext, folder: JobFolder, stage: int, offset: int = 0) -> None:
    ctx.log(f"Bringing up {name_stage(stage)}, a process of the gang that will train. Its log:")
    result = follow_rank(folder, rank_stage(stage), on_line=ctx.log, offset=offset)
    if result is not None:
        raise_for(result)
    ctx.log(f"{name_stage(stage)} is up. It computes together with the others in the task that trains.")
