"""Step `register_model`: a new version in the MLflow model registry."""

from __future__ import annotations

import sys
from typing import Any

from training.errors import PreflightError
from training.plan.jobs import plan_single_job
from training.run.job import TrackingRef
from training.steps.context import StepContext
from training.steps.job import run_job


def register_model(ctx: StepContext) -> dict[str, Any]:
    """Register the trained model as the spec's `register` block says; without one, nothing is registered.

    Returns:
        `model`, `version`, `alias` and `model_uri`; empty when the spec registers nothing.

    Raises:
        PreflightError: The run has no tracked model.
        TrackingError: The registry does not take it.
    """
    target = ctx.spec.registration
    if target is None:
        ctx.log("The spec has no `register` block: nothing is registered.")
        return {}
    tracking = TrackingRef.read(ctx.run.tracking)
    if tracking is None:
        raise PreflightError(f"{ctx.run.tracking} must name the MLflow run. Run train first.")
    payload = {
        "task": "register_model",
        "model": target.model,
        "alias": target.alias,
        "tracking": tracking.model_dump(mode="json"),
        "tags": {"ganger.run_id": ctx.run.run_id, **ctx.tags},
    }
    plan = plan_single_job(
        run_id=ctx.run.run_id, name="register_model", python=sys.executable, payload=payload, tracks=True
    )
    return run_job(ctx, plan).values
