"""The job of each step: what its processes are told to do. Paths are given, not looked for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from training.plan.job import GangPlan, JobPlan, LimitsPlan, ProcessPlan, TrackingPlan
from training.plan.machine import MachineFacts
from training.plan.mlflow_access import is_relayed, open_mlflow
from training.plan.run_plan import RunPlan, plan_run
from training.spec.parallelism import count_processes, list_smaller
from training.spec.pipeline import PipelineSpec

#: -P: what lies in the folder of whoever started the run replaces no package, and no model is loaded with its help.
_WORKER = ("-P", "-m", "training.worker")


def plan_single_job(
    *,
    run_id: str,
    name: str,
    python: str,
    payload: dict[str, Any],
    threads: int = 1,
    outputs: tuple[str, ...] = (),
    limits: LimitsPlan | None = None,
    tracking: TrackingPlan | None = None,
    env: dict[str, str] | None = None,
    tracks: bool = False,
) -> JobPlan:
    """Return a job of one process that runs the worker task `payload["task"]` in the environment of `python`."""
    process = ProcessPlan(rank=0, role=name, argv=(python, *_WORKER), env=env or {}, threads=threads, tracks=tracks)
    return JobPlan(
        run_id=run_id,
        name=name,
        processes=(process,),
        limits=limits or LimitsPlan(),
        outputs=outputs,
        tracking=tracking,
        payload=payload,
    )


def plan_train_job(
    plan: RunPlan,
    spec: PipelineSpec,
    machine: MachineFacts,
    *,
    run_id: str,
    base_dir: Path,
    dataset: Path | None,
    initial_model: Path | None = None,
    model_dir: Path,
    checkpoints: Path,
    tracking: TrackingPlan,
    logs_to_mlflow: bool = False,
) -> JobPlan:
    """Return the job that trains: the ranks of `plan`, each told the whole spec.

    With `logs_to_mlflow`, code of the user's on the first rank can reach the MLflow run of the training.
    """
    python = machine.environments[plan.environment].python
    payload = {
        "task": "train",
        "engine": plan.environment,
        "devices": plan.devices,
        "spec": spec.model_dump(mode="json", by_alias=True),
        "base_dir": str(base_dir),
        "dataset": str(dataset) if dataset else None,
        "initial_model": str(initial_model) if initial_model else None,
        "model_dir": str(model_dir),
        "checkpoints": str(checkpoints),
        "resume": True,  # from the run's own folder only, which is empty at the first try
        "logs_to_mlflow": logs_to_mlflow,
        "relayed": logs_to_mlflow and is_relayed(tracking),
    }

    def plan_gang(size: RunPlan) -> GangPlan:
        gang = GangPlan(processes=_plan_processes(size, python), ports=size.ports)
        return open_mlflow(gang, machine, tracking) if logs_to_mlflow else gang

    gang = plan_gang(plan)
    return JobPlan(
        run_id=run_id,
        name="train",
        processes=gang.processes,
        ports=gang.ports,
        smaller=tuple(plan_gang(size) for size in _plan_smaller(spec, machine)),
        slots=count_processes(spec.train.strategy, spec.workers),
        queue_timeout_s=plan.queue_timeout_s,
        limits=plan.limits,
        outputs=(str(model_dir / "MLmodel"),),
        tracking=tracking,
        payload=payload,
    )


def _plan_processes(plan: RunPlan, python: str) -> tuple[ProcessPlan, ...]:
    processes = tuple(
        ProcessPlan(
            rank=rank.rank,
            local_rank=rank.local_rank,
            role=rank.role,
            host=rank.host,
            argv=(python, *_WORKER),
            env=rank.env,
            threads=rank.threads,
            turn=_choose_turn(plan, rank.rank),
        )
        for rank in plan.ranks
    )
    return (*processes, *plan_services(plan, python))


def plan_services(plan: RunPlan, python: str) -> tuple[ProcessPlan, ...]:
    """Return the processes that serve the ranks of `plan`, run by `python`."""
    return tuple(
        ProcessPlan(
            rank=service.rank,
            local_rank=service.local_rank,
            role=service.role,
            host=service.host,
            argv=(python, "-P", "-m", *service.module),
            env=service.env,
            threads=service.threads,
            service=True,
            ready_on=service.ready_on,
            turn=_choose_turn(plan, service.rank),
        )
        for service in plan.services
    )


def _choose_turn(plan: RunPlan, rank: int) -> int:
    """Return when a process begins: the stages of a pipeline in their order, their chief last."""
    if plan.strategy != "pipeline":
        return 0
    return rank or 1 + len(plan.services)


def _plan_smaller(spec: PipelineSpec, machine: MachineFacts) -> Iterator[RunPlan]:
    """Yield the gangs that the training may go on with: fewer workers, the same global batches."""
    for workers in list_smaller(spec.cluster.workers, spec.cluster.min_workers, spec.train.batch_size):
        cluster = spec.cluster.model_copy(update={"workers": workers, "min_workers": None})
        yield plan_run(spec.model_copy(update={"cluster": cluster}), machine)
