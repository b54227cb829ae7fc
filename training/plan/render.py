"""The plan as text, for people: what `ganger plan` prints and what the training task logs."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable

from training.plan.run_plan import RankPlan, RunPlan, ServicePlan

_INDENT = 14


def render_plan(plan: RunPlan) -> str:
    """Return the plan as aligned lines that end without a line feed."""
    lines = [_render_line(name, text) for name, text in _describe(plan)]
    lines += _render_ranks(plan.ranks)
    lines += _render_services(plan.services)
    lines += [_render_line("note", note) for note in plan.notes]
    lines += [_render_line("not possible", problem) for problem in plan.problems]
    return "\n".join(lines)


def _describe(plan: RunPlan) -> Iterable[tuple[str, str]]:
    yield "pipeline", f"{plan.pipeline}  (plan {plan.digest})"
    yield "engine", f"{plan.engine}, strategy {plan.strategy}, environment {plan.environment}"
    yield from _describe_code(plan)
    yield "data", _describe_data(plan)
    yield "steps", _describe_steps(plan)
    for number, line in enumerate(plan.stages):
        yield "" if number else "stages", line
    yield "checkpoints", plan.checkpoint
    yield "limits", _describe_limits(plan)
    yield "restarts", _describe_restarts(plan)
    for number, one in enumerate(plan.limits.failure_patterns):
        yield "" if number else "failures", f"{one.pattern!r} is treated as {one.treat_as}"
    yield "files", ", ".join(plan.files.values())
    if plan.requirements:
        yield "must reach", ", ".join(plan.requirements)
    yield "MLflow", f"experiment {plan.experiment}" + (f", register {plan.register_as}" if plan.register_as else "")
    yield "gang", _describe_gang(plan)


def _describe_code(plan: RunPlan) -> Iterable[tuple[str, str]]:
    script = plan.script
    if script is None:
        yield "model", f"{plan.model}{_describe_params(plan)}"
        return
    yield "script", shlex.join(["python", script.path, *script.args])
    yield "", ", ".join(f"{name} = {what}" for name, what in script.env.items())
    yield "", "must leave a model" if script.wants_model else "may leave a model"


def _describe_gang(plan: RunPlan) -> str:
    waits = f", waits for free slots for at most {plan.queue_timeout_s:g} s" if plan.queue_timeout_s else ""
    ranks = "rank" if plan.world_size == 1 else "ranks"
    if plan.services:
        ranks += f" and {len(plan.services)} {'service' if len(plan.services) == 1 else 'services'}"
    fewer = f", may go on with {' or '.join(map(str, plan.smaller))} after a loss" if plan.smaller else ""
    seed = "" if plan.script else f", seed {plan.seed}"
    return f"{plan.world_size} {ranks} on {plan.backend}{seed}{fewer}{waits}"


def _describe_params(plan: RunPlan) -> str:
    return f"  {json.dumps(plan.model_params)}" if plan.model_params else ""


def _describe_data(plan: RunPlan) -> str:
    data = plan.data
    if data is None:
        return "the script's own"
    if data.sharding is not None:
        cut = "Ganger cuts its batches" if data.sharding == "ganger" else "which gives each replica its own share"
        return f"{data.source} of the model file, {cut}"
    if data.rows is None:
        return f"{data.source}, rows known after prepare_data"
    shape = "" if data.feature_shape is None else f" of shape {list(data.feature_shape)}"
    classes = f", {data.classes} classes" if data.classes else ""
    return f"{data.source}, {data.rows} training rows{shape}, {data.validation_rows} held out{classes}"


def _describe_steps(plan: RunPlan) -> str:
    steps = plan.steps
    if plan.script:
        return "known to the script alone"
    if steps is None:
        own = plan.data is not None and plan.data.sharding is not None
        return "counted when the training starts" if own else "known after prepare_data"
    dropped = steps.dropped_rows_per_epoch
    return (
        f"{steps.total_steps} = {steps.epochs} epochs x {steps.steps_per_epoch}, "
        f"global batch {steps.global_batch_size} ({steps.per_rank_batch_size} per replica)"
        f"{'' if dropped is None else f', {dropped} rows dropped per epoch'}"
    )


def _describe_limits(plan: RunPlan) -> str:
    limits = plan.limits
    total = f", {limits.timeout_s:g} s in all" if limits.timeout_s else ""
    return f"start within {limits.start_timeout_s:g} s, silent for at most {limits.stall_timeout_s:g} s{total}"


def _describe_restarts(plan: RunPlan) -> str:
    limits = plan.limits
    return f"{limits.restarts} after infrastructure failures, {limits.user_restarts} after failures of the user's code"


def _render_ranks(ranks: Iterable[RankPlan]) -> list[str]:
    lines = []
    for rank in ranks:
        where = f"{rank.role} on {rank.host}, {_count_threads(rank)}, {', '.join(rank.devices)}"
        lines += [_render_line(f"  rank {rank.rank}", where), *_render_env(rank)]
    return lines


def _render_services(services: Iterable[ServicePlan]) -> list[str]:
    lines = []
    for service in services:
        where = f"{service.role} on {service.host}, {_count_threads(service)}, serves the others"
        lines += [_render_line(f"  rank {service.rank}", where), *_render_env(service)]
    return lines


def _render_env(process: RankPlan | ServicePlan) -> list[str]:
    return [" " * _INDENT + f"{name}={value}" for name, value in sorted(process.env.items())]


def _count_threads(process: RankPlan | ServicePlan) -> str:
    return f"{process.threads} {'thread' if process.threads == 1 else 'threads'}"


def _render_line(name: str, text: str) -> str:
    return f"{name:<{_INDENT}}{text}"
