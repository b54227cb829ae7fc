"""Step `provision_cluster`: preflight, then choose what the gang will run on.

It takes nothing: the supervisor of the training takes the slots of the gang, all at once, when it starts (ADR 0004).
"""

from __future__ import annotations

import sys
from typing import Any

from pydantic import ConfigDict

from training.errors import PreflightError
from training.plan.built import check_preflight
from training.plan.jobs import plan_single_job
from training.plan.machine import MachineFacts
from training.plan.placement import place_ranks
from training.run.folder import FileModel, RunFolder
from training.settings import read_tracking_uri
from training.spec.parallelism import count_processes
from training.steps.context import StepContext, open_run
from training.steps.initial_model import find_initial_model_problems
from training.steps.job import run_job
from training.steps.machine import read_machine
from training.steps.user_code import find_code_problems
from training.tracking.mask import mask_uri


class Allocation(FileModel):
    """`allocation.json`: the hosts that a run is to use, until `teardown_cluster` strikes them out."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    run_id: str
    backend: str
    ranks: dict[str, int]
    """Host to number of ranks."""


def provision_cluster(ctx: StepContext) -> dict[str, Any]:
    """Check that the run can work on this machine, and choose its hosts.

    Returns:
        `backend` and `ranks` (host to number of ranks).

    Raises:
        PreflightError: Something that the run needs is not built or absent.
        TrackingError: The tracking server does not take a probe.
    """
    open_run(ctx)
    machine = read_machine()
    check_run(ctx, machine)
    _check_tracking(ctx)
    allocation = _allocate(ctx, machine)
    allocation.write(ctx.run.allocation)
    for host, ranks in allocation.ranks.items():
        ctx.log(f"{host}: {ranks} {'rank' if ranks == 1 else 'ranks'}")
    return {"backend": allocation.backend, "ranks": allocation.ranks}


def check_run(ctx: StepContext, machine: MachineFacts) -> None:
    """Refuse, before anything starts, what cannot work on this machine.

    Raises:
        PreflightError: With everything that is missing.
    """
    problems = [
        *check_preflight(ctx.spec, machine),
        *find_code_problems(ctx.file),
        *find_initial_model_problems(ctx.file),
    ]
    if problems:
        raise PreflightError("\n".join(str(problem) for problem in problems))


def release_cluster(run: RunFolder) -> Allocation | None:
    """Strike out the hosts of the run; returns them, or None where none were chosen."""
    allocation = Allocation.read(run.allocation)
    run.allocation.unlink(missing_ok=True)
    return allocation


def _check_tracking(ctx: StepContext) -> None:
    payload = {
        "task": "check_tracking",
        "tracking_uri": mask_uri(read_tracking_uri()),
        "experiment": ctx.spec.experiment_name,
    }
    run_job(
        ctx,
        plan_single_job(
            run_id=ctx.run.run_id, name="provision_cluster", python=sys.executable, payload=payload, tracks=True
        ),
        again=True,  # the server of then may be away now
    )


def _allocate(ctx: StepContext, machine: MachineFacts) -> Allocation:
    ranks: dict[str, int] = {}
    processes = count_processes(ctx.spec.train.strategy, ctx.spec.workers)
    for placement in place_ranks(processes, machine.hosts):
        ranks[placement.host] = ranks.get(placement.host, 0) + 1
    return Allocation(run_id=ctx.run.run_id, backend=ctx.spec.cluster.backend, ranks=ranks)
