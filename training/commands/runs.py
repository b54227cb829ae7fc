"""`ganger runs`: what ran on this machine."""

from __future__ import annotations

import json
import time
from typing import Any

import click

from training.commands.options import json_option
from training.run.folder import RunFolder
from training.run.job import JobResult, JobStatus
from training.settings import read_home
from training.steps.context import RunRecord

#: Jobs in the order of a pipeline: the latest one that was started tells how the run stands.
_ORDER = ("prepare_data", "provision_cluster", "train", "evaluate", "register_model")


@click.command()
@json_option
def runs(as_json: bool) -> None:
    """List the runs, newest first."""
    found = [row for path in (read_home() / "runs").glob("*") if (row := _describe(RunFolder(path)))]
    found.sort(key=lambda row: -row["created_at"])
    if as_json:
        click.echo(json.dumps(found))
        return
    if not found:
        click.echo("No runs yet. Start one: ganger run dags/pipelines/digits.yaml")
        return
    width = max(len(row["run_id"]) for row in found)
    click.echo(f"{'RUN':<{width}}  {'STARTED':<16}  {'STEP':<17}  {'STATE':<10}  METRICS")
    for row in found:
        started = time.strftime("%Y-%m-%d %H:%M", time.localtime(row["created_at"]))
        metrics = "  ".join(f"{name} {value:.4g}" for name, value in row["metrics"].items())
        click.echo(
            f"{row['run_id']:<{width}}  {started:<16}  {row['step']:<17}  {row['state']:<10}  {metrics}".rstrip()
        )


def _describe(run: RunFolder) -> dict[str, Any] | None:
    record = RunRecord.read(run.record)
    if record is None:
        return None
    step, state = _read_state(run)
    train = JobResult.read(run.job("train").result)
    metrics = train.values.get("metrics", {}) if train else {}
    return {
        "run_id": run.run_id,
        "pipeline": record.pipeline,
        "created_at": record.created_at,
        "step": step,
        "state": state,
        "metrics": metrics,
        "mlflow_run_id": train.mlflow_run_id if train else None,
    }


def _read_state(run: RunFolder) -> tuple[str, str]:
    for name in reversed(_ORDER):
        job = run.job(name)
        if not job.job.exists():
            continue
        result = JobResult.read(job.result)
        status = result or JobStatus.read(job.status)
        return name, str(status.state) if status else "starting"
    return "", "created"
