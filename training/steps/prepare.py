"""Step `prepare_data`: the rows as memory-mappable arrays with a manifest, made once and reused."""

from __future__ import annotations

import sys
from typing import Any

from training.plan.jobs import plan_single_job
from training.steps.context import StepContext, open_run
from training.steps.job import run_job


def prepare_data(ctx: StepContext) -> dict[str, Any]:
    """Prepare the data of the pipeline, or find it prepared; a script and a `build_dataset` have their own.

    Returns:
        `dataset` (its folder), `fingerprint`, `rows`, `validation_rows`, `reused`; nothing where nothing is prepared.

    Raises:
        GangerError: The source is unreadable or not what the spec says.
    """
    open_run(ctx)
    if ctx.spec.data is None:
        ctx.log("The spec has no `data` block: the script has its own rows.")
        return {}
    if ctx.spec.builds_dataset:
        ctx.log("The rows come from build_dataset of the model file: nothing is prepared.")
        return {}
    payload = {
        "task": "prepare_data",
        "data": ctx.spec.data.model_dump(mode="json"),
        "base_dir": str(ctx.file.base_dir),
        "home": str(ctx.run.home),
        "output": str(ctx.run.dataset),
    }
    plan = plan_single_job(
        run_id=ctx.run.run_id,
        name="prepare_data",
        python=sys.executable,
        payload=payload,
        outputs=(str(ctx.run.dataset),),
    )
    return run_job(ctx, plan).values
