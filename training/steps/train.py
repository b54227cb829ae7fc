"""Step `train`: the gang."""

from __future__ import annotations

from typing import Any

from training.plan.job import JobPlan
from training.plan.jobs import plan_train_job
from training.plan.machine import MachineFacts
from training.plan.render import render_plan
from training.plan.run_plan import RunPlan, plan_run
from training.run.folder import write_atomic
from training.steps.context import StepContext, open_run
from training.steps.dataset import PreparedDataset, read_dataset
from training.steps.job import run_job
from training.steps.machine import read_machine
from training.steps.provision import check_run
from training.steps.tracking import plan_tracking


def train(ctx: StepContext) -> dict[str, Any]:
    """Train the model of the pipeline with all its ranks.

    Returns:
        `mlflow_run_id` and what the chief said: `metrics`, `steps`, `weights_sha256`, `weights_norm`, `model`.

    Raises:
        GangerError: The training failed; the first failing rank is the headline.
    """
    open_run(ctx)
    machine = read_machine()
    check_run(ctx, machine)
    dataset = read_dataset(ctx.run)
    plan = plan_run(ctx.spec, machine, dataset.facts)
    write_atomic(ctx.run.plan, plan.model_dump_json(indent=2) + "\n")
    for line in render_plan(plan).splitlines():
        ctx.log(line)
    result = run_job(ctx, _plan_job(ctx, plan, machine, dataset))
    return {**result.values, "mlflow_run_id": result.mlflow_run_id, "workers": plan.world_size}


def _plan_job(ctx: StepContext, plan: RunPlan, machine: MachineFacts, dataset: PreparedDataset) -> JobPlan:
    return plan_train_job(
        plan,
        ctx.spec,
        machine,
        run_id=ctx.run.run_id,
        base_dir=ctx.file.base_dir,
        dataset=dataset.path,
        model_dir=ctx.run.model,
        checkpoints=ctx.run.checkpoints,
        tracking=plan_tracking(ctx, plan),
    )
