"""Step `train`: the gang, started or joined, followed, and what came of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from training.errors import LaunchError, PreflightError
from training.plan.job import JobPlan
from training.plan.jobs import plan_train_job
from training.plan.machine import MachineFacts
from training.plan.render import render_plan
from training.plan.run_plan import RunPlan, plan_run
from training.plan.script_job import plan_script_job
from training.run.folder import write_atomic
from training.run.follow import raise_for
from training.run.job import JobResult
from training.run.standing import Standing, read_standing
from training.run.turn import call_all, read_turn, write_turn
from training.spec.parallelism import count_processes
from training.steps.context import StepContext, open_run
from training.steps.dataset import PreparedDataset, read_dataset
from training.steps.initial_model import fetch_initial_model
from training.steps.job import follow_job, join_job, start_job
from training.steps.machine import read_machine
from training.steps.model_source import imports_mlflow
from training.steps.provision import check_run
from training.steps.split import read_split
from training.steps.tracking import plan_tracking

NAME = "train"


def train(ctx: StepContext) -> dict[str, Any]:
    """Train the model of the pipeline with all its ranks.

    Returns:
        As `read_training`.

    Raises:
        GangerError: The training failed; the first failing rank is the headline.
    """
    follow_training(ctx, start_training(ctx))
    return read_training(ctx)


def start_training(ctx: StepContext, turn: int | None = None) -> int:
    """Plan the training and start its gang, or find the one that runs; return from where in its log to follow it.

    Args:
        ctx: The run.
        turn: The last turn that is called, where the gang is brought up one by one; None to begin at once.

    Raises:
        GangerError: Something that it needs is absent, or it cannot be started.
    """
    open_run(ctx)
    folder = ctx.run.job(NAME, ctx.map_index)
    if turn is None and read_turn(folder) is not None and read_standing(folder) is Standing.ACTIVE:
        return join_training(ctx)  # its stages were brought up one by one
    machine = read_machine()
    check_run(ctx, machine)
    dataset = read_dataset(ctx.run) if ctx.spec.prepares_data else None
    initial_model = fetch_initial_model(ctx)
    facts = dataset.facts if dataset else None
    plan = plan_run(ctx.spec, machine, facts)
    split = read_split(ctx.file, machine.environments[plan.environment], facts)
    if split.problem:
        raise PreflightError(split.problem)
    plan = plan.model_copy(update={"stages": split.stages or plan.stages})
    write_atomic(ctx.run.plan, plan.model_dump_json(indent=2) + "\n")
    for line in render_plan(plan).splitlines():
        ctx.log(line)
    if turn is None:
        call_all(folder)
    else:
        write_turn(folder, turn)
    return start_job(ctx, _plan_job(ctx, plan, machine, dataset, initial_model))


def read_training_standing(ctx: StepContext) -> Standing:
    """Return where the training of the run stands, for a try that comes to it."""
    return read_standing(ctx.run.job(NAME, ctx.map_index))


def join_training(ctx: StepContext) -> int:
    """Become the follower of the gang that runs; return from where in its log to follow it. It trains from now on."""
    call_all(ctx.run.job(NAME, ctx.map_index))
    return join_job(ctx, NAME)


def follow_training(ctx: StepContext, offset: int = 0) -> None:
    """Follow the training from `offset` in its log to its end.

    Raises:
        GangerError: The training failed; the first failing rank is the headline.
    """
    follow_job(ctx, NAME, offset=offset)


def read_training(ctx: StepContext) -> dict[str, Any]:
    """Return what came of a training that has succeeded.

    Returns:
        `mlflow_run_id`, `workers`, and what the chief said: `metrics`, `steps`, `weights_sha256`, `weights_norm`,
        `model`; a script says nothing.

    Raises:
        GangerError: It has not succeeded.
    """
    folder = ctx.run.job(NAME, ctx.map_index)
    result = JobResult.read(folder.result)
    if result is None:
        raise LaunchError(f"{folder.job_id} must be over. Received: {read_standing(folder)}.")
    raise_for(result)
    workers = count_processes(ctx.spec.train.strategy, ctx.spec.workers)
    return {**result.values, "mlflow_run_id": result.mlflow_run_id, "workers": workers}


def _plan_job(
    ctx: StepContext, plan: RunPlan, machine: MachineFacts, dataset: PreparedDataset | None, initial_model: Path | None
) -> JobPlan:
    if plan.script is not None:
        return plan_script_job(
            plan,
            ctx.spec,
            machine,
            run_id=ctx.run.run_id,
            base_dir=ctx.file.base_dir,
            dataset=dataset.path if dataset else None,
            model_dir=ctx.run.model,
            checkpoints=ctx.run.checkpoints,
            tracking=plan_tracking(ctx, plan),
        )
    return plan_train_job(
        plan,
        ctx.spec,
        machine,
        run_id=ctx.run.run_id,
        base_dir=ctx.file.base_dir,
        dataset=dataset.path if dataset else None,
        initial_model=initial_model,
        model_dir=ctx.run.model,
        checkpoints=ctx.run.checkpoints,
        tracking=plan_tracking(ctx, plan),
        logs_to_mlflow=imports_mlflow(ctx.file),
    )
