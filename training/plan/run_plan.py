"""The plan of a training: everything that `ganger plan` prints, as one value."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from training import settings
from training.plan.batches import BatchPlan, choose_per_rank_batch_size, plan_batches
from training.plan.built import find_unbuilt
from training.plan.facts import DataFacts
from training.plan.framework import choose_environment
from training.plan.job import FailurePatternPlan, LimitsPlan
from training.plan.machine import MachineFacts
from training.plan.micro_batches import choose_micro_batches, describe_step
from training.plan.placement import RankPlacement, place_ranks
from training.plan.ranks import choose_ports, choose_ranks, place_services, render_rank_env
from training.plan.stage_table import render_equal_stages
from training.spec.parallelism import count_devices, count_processes, count_replicas, list_smaller
from training.spec.pipeline import PipelineSpec
from training.spec.train import TrainSpec


class _Plan(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class RankPlan(_Plan):
    """One rank of the training."""

    rank: int
    local_rank: int
    role: str = "worker"
    host: str
    threads: int
    devices: tuple[str, ...] = ("CPU:0",)
    env: dict[str, str] = {}
    """What is added to its environment; `{port:NAME}` stands for a port that is chosen at the start."""


class ServicePlan(_Plan):
    """A process that serves the ranks."""

    rank: int
    role: str
    host: str
    module: tuple[str, ...]
    """Module that it runs, with arguments."""
    local_rank: int = 0
    threads: int = 1
    env: dict[str, str] = {}
    """What is added to its environment; `{port:NAME}` stands for a port that is chosen at the start."""
    ready_on: Literal["event", "output"] = "output"
    """What tells that it serves."""


class DataPlan(_Plan):
    """The rows; counts are None until the source was read."""

    source: str
    rows: int | None = None
    validation_rows: int | None = None
    feature_shape: tuple[int, ...] | None = None
    classes: int | None = None
    sharding: Literal["ganger", "own"] | None = None
    """Who cuts the batches of a `build_dataset` into shares; None for rows that are prepared."""


class StepsPlan(_Plan):
    """How the rows become steps."""

    global_batch_size: int
    per_rank_batch_size: int
    steps_per_epoch: int
    dropped_rows_per_epoch: int | None
    """Rows at the end of an epoch's order that fill no whole batch, other rows each epoch; None where not known."""
    epochs: int
    total_steps: int


class ScriptPlan(_Plan):
    """A script of somebody's own, which every rank runs."""

    path: str
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    """What it is told of the run, beside what its framework is told: variable to file, relative to the run folder."""
    wants_model: bool = False
    """Whether it must leave a model, to be evaluated or registered."""


class RunPlan(_Plan):
    """What will run where, with what, for how many steps."""

    schema_version: Literal[1] = 1
    pipeline: str
    experiment: str
    engine: str
    strategy: str
    backend: str
    environment: str
    """Name of the Python environment of the ranks."""
    model: str | None
    model_params: dict[str, Any] = {}
    script: ScriptPlan | None = None
    seed: int
    data: DataPlan | None
    steps: StepsPlan | None
    """None until the number of rows is known, and where a script decides."""
    ranks: tuple[RankPlan, ...]
    services: tuple[ServicePlan, ...] = ()
    devices: int = 1
    """Devices that each rank computes on: each a replica, or with some of the blocks."""
    ports: tuple[str, ...] = ()
    limits: LimitsPlan
    queue_timeout_s: float | None = None
    """How long the gang may wait until its host has a free slot for each rank; None for as long as it takes."""
    files: dict[str, str]
    """What the run writes, relative to its run folder."""
    checkpoint: str
    requirements: tuple[str, ...] = ()
    """What the trained model must reach."""
    register_as: str | None = None
    stages: tuple[str, ...] = ()
    """What the stages of a pipeline will be and take."""
    smaller: tuple[int, ...] = ()
    """Numbers of ranks that the gang may go on with after it lost some."""
    notes: tuple[str, ...] = ()
    """What of the spec has no effect, or another one than might be expected."""
    problems: tuple[str, ...] = ()
    """Why the plan cannot run today."""

    @property
    def world_size(self) -> int:
        """Number of ranks."""
        return len(self.ranks)

    @property
    def digest(self) -> str:
        """First 12 hex digits of the SHA-256 of the plan as canonical JSON: equal plans, equal digests."""
        text = json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:12]


def plan_run(spec: PipelineSpec, machine: MachineFacts, data: DataFacts | None = None) -> RunPlan:
    """Return the plan of the training that `spec` describes.

    Args:
        spec: What was asked for.
        machine: What it would run on.
        data: What is known of the rows; None when that is found out only by preparing them.

    Raises:
        SpecError: The batch size does not fit the number of ranks or rows.
    """
    train, cluster = spec.train, spec.cluster
    processes = count_processes(train.strategy, spec.workers)
    workers = place_ranks(processes, machine.hosts, cluster.threads_per_worker)
    services = place_services(spec, workers)
    ranks = choose_ranks(spec, workers)
    devices = count_devices(train.strategy, spec.workers, cluster.devices)
    return RunPlan(
        pipeline=spec.name,
        experiment=spec.experiment_name,
        engine=spec.train.engine,
        strategy=spec.train.strategy,
        backend=spec.cluster.backend,
        environment=choose_environment(spec),
        model=spec.model.entrypoint if spec.model else None,
        model_params=dict(spec.model.params) if spec.model else {},
        script=_plan_script(spec),
        seed=spec.train.seed,
        data=_plan_data(spec, data),
        steps=_plan_steps(spec, data),
        ranks=tuple(_plan_rank(spec, workers, placement, devices) for placement in ranks),
        services=tuple(ServicePlan(**asdict(service)) for service in services),
        devices=devices,
        ports=choose_ports(spec, workers),
        limits=plan_limits(spec),
        queue_timeout_s=spec.cluster.queue_timeout_s,
        files=_plan_files(len(ranks) + len(services)),
        checkpoint=_describe_checkpoint(spec),
        requirements=tuple(_describe_requirements(spec)),
        register_as=_describe_registration(spec),
        stages=tuple(_describe_stages(spec, data)),
        smaller=tuple(list_smaller(cluster.workers, cluster.min_workers, None if train.script else train.batch_size)),
        notes=tuple(_note_workers(spec, processes, devices)),
        problems=tuple(str(problem) for problem in find_unbuilt(spec)),
    )


def _describe_stages(spec: PipelineSpec, data: DataFacts | None) -> list[str]:
    if spec.train.strategy != "pipeline":
        return []
    unknown = ""
    if data is None or data.feature_shape is None:
        when = "the chief has built its dataset" if spec.builds_dataset else "prepare_data has run"
        unknown = f"the model is split once its rows are known: when {when}"
    return render_equal_stages(spec.workers, spec.train.pipeline, spec.train.batch_size, unknown)


def _note_workers(spec: PipelineSpec, processes: int, devices: int) -> list[str]:
    workers, strategy = spec.workers, spec.train.strategy
    if strategy == "parameter_server" and workers > 1 and spec.train.script is None:
        return [f"strategy {strategy} is asynchronous: a step is {workers} updates, and no run equals another"]
    if strategy == "dist_async" and workers > 1 and spec.train.script is None:
        return [
            f"strategy {strategy} is asynchronous: a step is {workers} updates, each of one worker's rows and scaled "
            "by the global batch; workers meet at checkpoints, and no run equals another"
        ]
    if processes == workers:
        return []
    what = f"{devices} devices of one process" if devices > 1 else "one process, whatever cluster.workers says"
    return [f"strategy {strategy} trains with {what}", *_note_blocks(spec.train, devices)]


def _note_blocks(train: TrainSpec, devices: int) -> list[str]:
    if train.engine != "mxnet" or train.strategy != "model_parallel":
        return []
    parts = choose_micro_batches(train.micro_batches, devices, train.batch_size)
    return [f"placement: {describe_step(train.placement, parts)}"]


def plan_limits(spec: PipelineSpec) -> LimitsPlan:
    """Return the deadlines that the training is held to, and its budgets of restarts."""
    train = spec.train
    return LimitsPlan(
        start_timeout_s=train.start_timeout_s,
        stall_timeout_s=train.stall_timeout_s,
        stop_grace_s=train.stop_grace_s,
        timeout_s=train.timeout_s,
        restarts=train.restarts,
        user_restarts=train.user_restarts,
        failure_patterns=tuple(
            FailurePatternPlan(pattern=one.pattern, treat_as=one.treat_as) for one in train.failure_patterns
        ),
    )


def _plan_rank(
    spec: PipelineSpec, workers: tuple[RankPlacement, ...], placement: RankPlacement, devices: int
) -> RankPlan:
    return RankPlan(
        rank=placement.rank,
        local_rank=placement.local_rank,
        role=placement.role,
        host=placement.host,
        threads=placement.threads,
        devices=tuple(f"CPU:{index}" for index in range(devices)),
        env=render_rank_env(spec, workers, placement.rank),
    )


def _plan_script(spec: PipelineSpec) -> ScriptPlan | None:
    if spec.train.script is None:
        return None
    env = {settings.MODEL_DIR: "model/", settings.CHECKPOINT_DIR: "checkpoints/"}
    if spec.data is not None:
        env[settings.DATASET] = "the prepared rows"
    wants_model = bool(spec.evaluate.require) or spec.registration is not None
    return ScriptPlan(path=spec.train.script, args=spec.train.args, env=env, wants_model=wants_model)


def _plan_data(spec: PipelineSpec, data: DataFacts | None) -> DataPlan | None:
    if spec.data is None:
        return None
    if spec.builds_dataset:
        return DataPlan(source=spec.data.source, sharding=spec.data.sharding)
    if data is None:
        return DataPlan(source=spec.data.source)
    return DataPlan(
        source=spec.data.source,
        rows=data.rows,
        validation_rows=data.validation_rows,
        feature_shape=data.feature_shape,
        classes=data.classes,
    )


def _plan_steps(spec: PipelineSpec, data: DataFacts | None) -> StepsPlan | None:
    replicas = count_replicas(spec.train.strategy, spec.workers, spec.cluster.devices)
    if spec.train.steps_per_epoch is not None:
        return StepsPlan(
            global_batch_size=spec.train.batch_size,
            per_rank_batch_size=choose_per_rank_batch_size(spec.train.batch_size, replicas),
            steps_per_epoch=spec.train.steps_per_epoch,
            dropped_rows_per_epoch=None,
            epochs=spec.train.epochs,
            total_steps=spec.train.steps_per_epoch * spec.train.epochs,
        )
    if data is None or spec.train.script is not None:
        return None
    batches: BatchPlan = plan_batches(data.rows, spec.train.batch_size, replicas)
    return StepsPlan(
        global_batch_size=batches.global_batch_size,
        per_rank_batch_size=batches.per_rank_batch_size,
        steps_per_epoch=batches.steps_per_epoch,
        dropped_rows_per_epoch=batches.dropped_rows_per_epoch,
        epochs=spec.train.epochs,
        total_steps=batches.steps_per_epoch * spec.train.epochs,
    )


def _plan_files(processes: int) -> dict[str, str]:
    logs = "jobs/train/logs/rank-0.log" + (f" … rank-{processes - 1}.log" if processes > 1 else "")
    return {"model": "model/", "checkpoints": "checkpoints/", "logs": logs, "events": "jobs/train/events.jsonl"}


def _describe_checkpoint(spec: PipelineSpec) -> str:
    if spec.train.script is not None:
        return "by the script"
    checkpoint = spec.train.checkpoint
    every = f"every {checkpoint.every_steps} steps and " if checkpoint.every_steps else ""
    return f"{every}at the end of each epoch, newest {checkpoint.keep} kept"


def _describe_requirements(spec: PipelineSpec) -> list[str]:
    texts = []
    for name, bound in spec.evaluate.bounds().items():
        texts += [f"{name} >= {bound.min:g}"] if bound.min is not None else []
        texts += [f"{name} <= {bound.max:g}"] if bound.max is not None else []
    return texts


def _describe_registration(spec: PipelineSpec) -> str | None:
    target = spec.registration
    if target is None:
        return None
    return f"{target.model}@{target.alias}" if target.alias else target.model
