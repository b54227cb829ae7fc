"""The job of somebody's own script: each rank runs it, told of the others as its framework expects. Paths are given."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from training import settings
from training.plan.job import GangPlan, JobPlan, ProcessPlan, TrackingPlan
from training.plan.jobs import plan_services
from training.plan.machine import MachineFacts
from training.plan.run_plan import RankPlan, RunPlan, plan_run
from training.spec.parallelism import count_processes
from training.spec.pipeline import PipelineSpec

#: What runs a script as `python script.py` does. -P: the script's folder comes first on its path, and no other.
RUNNER = ("-P", "-m", "training.script")
#: Name of the port of the server that stands between a script and a database of MLflow, as `JobPlan.ports` lists it.
RELAY_PORT = "mlflow"
_RELAY_HOST = "127.0.0.1"


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
    relayed = not _is_server(tracking.tracking_uri)
    relay = machine.environments["control"].python if relayed else None

    def plan_gang(size: RunPlan) -> GangPlan:
        ranks = tuple(_plan_rank(rank, argv, env | _tell_of_mlflow(rank, tracking, relayed)) for rank in size.ranks)
        processes = ranks + plan_services(size, python)
        if relay is None:
            return GangPlan(processes=processes, ports=size.ports)
        return GangPlan(processes=(*processes, _plan_relay(len(processes), relay)), ports=(*size.ports, RELAY_PORT))

    gang = plan_gang(plan)
    return JobPlan(
        run_id=run_id,
        name="train",
        processes=gang.processes,
        ports=gang.ports,
        smaller=tuple(plan_gang(_plan_size(spec, machine, workers)) for workers in plan.smaller),
        slots=count_processes(spec.train.strategy, spec.cluster.workers),
        queue_timeout_s=plan.queue_timeout_s,
        limits=plan.limits,
        outputs=(str(model_dir / "MLmodel"),) if script.wants_model else (),
        tracking=tracking,
        payload={
            "task": "script",
            "engine": plan.engine,
            "strategy": plan.strategy,
            "base_dir": str(base_dir),
            "model_dir": str(model_dir),
            "relayed": relayed,
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
        tracks=rank.rank == 0,
    )


def _tell_of_mlflow(rank: RankPlan, tracking: TrackingPlan, relayed: bool) -> dict[str, str]:
    """Return what the first rank, and no other, is told: where its MLflow run is."""
    if rank.rank != 0:
        return {}
    address = {settings.TRACKING_URI: f"http://{_RELAY_HOST}:{{port:{RELAY_PORT}}}"} if relayed else {}
    return {settings.EXPERIMENT_NAME: tracking.experiment, **address}


def _plan_relay(rank: int, python: str) -> ProcessPlan:
    """Return the server for rank 0: engine environments have no drivers of MLflow's databases."""
    module = ("-P", "-m", "training.tracking.relay", _RELAY_HOST, f"{{port:{RELAY_PORT}}}")
    return ProcessPlan(
        rank=rank, role="mlflow", host=_RELAY_HOST, argv=(python, *module), service=True, ready_on="output", tracks=True
    )


def _is_server(uri: str) -> bool:
    return urlsplit(uri).scheme in ("http", "https")
