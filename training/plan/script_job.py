"""The job of somebody's own script: each rank runs it, told of the others as its framework expects. Paths are given."""

from __future__ import annotations

from pathlib import Path

from training import settings
from training.plan.job import GangPlan, JobPlan, ProcessPlan, TrackingPlan
from training.plan.jobs import plan_services
from training.plan.machine import MachineFacts
from training.plan.mlflow_access import is_relayed, open_mlflow
from training.plan.run_plan import RankPlan, RunPlan, plan_run
from training.spec.parallelism import count_processes
from training.spec.pipeline import PipelineSpec

#: What runs a script as `python script.py` does. -P: the script's folder comes first on its path, and no other.
RUNNER = ("-P", "-m", "training.script")


def plan_script_job(
    plan: RunPlan,
    spec: PipelineSpec,
    machine: MachineFacts,
    *,
    run_id: str,
    base_dir: Path,
    dataset: Path | None,
    model_dir: Path,
    checkpoints: Path,
    tracking: TrackingPlan,
) -> JobPlan:
    """Return the job whose ranks run the script of `plan`; it knows nothing of events, so its output must do."""
    script = plan.script
    assert script is not None
    python = machine.environments[plan.environment].python
    argv = (python, *RUNNER, str(base_dir / Path(script.path).expanduser()), *script.args)
    env = {settings.MODEL_DIR: str(model_dir), settings.CHECKPOINT_DIR: str(checkpoints)}
    if dataset is not None:
        env[settings.DATASET] = str(dataset)

    def plan_gang(size: RunPlan) -> GangPlan:
        ranks = tuple(_plan_rank(rank, argv, env) for rank in size.ranks)
        gang = GangPlan(processes=(*ranks, *plan_services(size, python)), ports=size.ports)
        return open_mlflow(gang, machine, tracking)

    gang = plan_gang(plan)
    return JobPlan(
        run_id=run_id,
        name="train",
        processes=gang.processes,
        ports=gang.ports,
        smaller=tuple(plan_gang(_plan_size(spec, machine, workers)) for workers in plan.smaller),
        slots=count_processes(spec.train.strategy, spec.workers),
        queue_timeout_s=plan.queue_timeout_s,
        limits=plan.limits,
        outputs=(str(model_dir / "MLmodel"),) if script.wants_model else (),
        tracking=tracking,
        payload={
            "task": "script",
            "engine": plan.environment,
            "strategy": plan.strategy,
            "base_dir": str(base_dir),
            "model_dir": str(model_dir),
            "relayed": is_relayed(tracking),
            "wants_model": script.wants_model,
        },
    )


def _plan_size(spec: PipelineSpec, machine: MachineFacts, workers: int) -> RunPlan:
    cluster = spec.cluster.model_copy(update={"workers": workers, "min_workers": None})
    return plan_run(spec.model_copy(update={"cluster": cluster}), machine)


def _plan_rank(rank: RankPlan, argv: tuple[str, ...], env: dict[str, str]) -> ProcessPlan:
    return ProcessPlan(
        rank=rank.rank,
        local_rank=rank.local_rank,
        role=rank.role,
        host=rank.host,
        argv=argv,
        env={**rank.env, **env},
        threads=rank.threads,
        ready_on="output",
    )
