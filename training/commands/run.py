"""`ganger run`: the whole pipeline on this machine, without Airflow."""

from __future__ import annotations

import json
import secrets
import signal
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

import click

from training.commands.options import find_run, json_option, load, set_option
from training.errors import GangerError, SpecError, spec_error
from training.run.folder import RunFolder
from training.run.job import TrackingRef
from training.spec.file import PipelineFile
from training.steps.context import StepContext, read_run
from training.steps.pipeline import PipelineOutcome, run_pipeline


@click.command()
@click.argument("spec", required=False, type=click.Path(path_type=Path))
@set_option
@json_option
@click.option(
    "--resume", metavar="RUN", help="Go on with a run that failed or was interrupted, from its last checkpoint."
)
@click.option("--yes", is_flag=True, help="Register without asking where the spec wants an approval.")
def run(spec: Path | None, overrides: tuple[str, ...], as_json: bool, resume: str | None, yes: bool) -> None:
    """Run the pipeline SPEC: prepare, provision, train, evaluate, register, tear down."""
    from training.commands.progress import Progress
    from training.steps.framework import recognise_framework

    file, folder = _choose_run(spec, overrides, resume)
    file = recognise_framework(file)
    signal.signal(signal.SIGTERM, _interrupt)
    _check_approval(file, yes)
    with Progress(folder) as progress:
        ctx = StepContext(file=file, run=folder, log=progress.print, tags={"ganger.started_by": "ganger run"})
        progress.print(f"run {folder.run_id}")
        if resume and file.spec != read_run(folder).to_file().spec:
            progress.print("note: the spec is not the one that the run began with; the new one counts.")
        outcome = run_pipeline(ctx, on_step=progress.step, approve=lambda: yes or _ask(file, progress))
    if as_json:
        click.echo(json.dumps(_describe(folder, outcome)))
    if outcome.error is not None:
        _fail(outcome.error, folder)
    click.echo(_summarise(folder, outcome), err=True)


def _choose_run(spec: Path | None, overrides: tuple[str, ...], resume: str | None) -> tuple[PipelineFile, RunFolder]:
    if resume is None:
        if spec is None:
            raise click.UsageError("either SPEC or --resume RUN must be given.")
        file = load(spec, overrides)
        moment = time.strftime("%Y%m%dT%H%M%S")
        return file, RunFolder.of(f"{file.spec.name}-{moment}-{secrets.token_hex(3)}")
    folder = find_run(resume)
    recorded = read_run(folder).to_file()
    if overrides and spec is None:
        raise spec_error("--set", "a resumed run keeps its spec.", "Give SPEC too when something shall change.")
    return (load(spec, overrides) if spec else recorded), folder


def _interrupt(signum: int, frame: object) -> NoReturn:
    raise KeyboardInterrupt


def _check_approval(file: PipelineFile, yes: bool) -> None:
    target = file.spec.registration
    if target is not None and target.approval and not yes and not sys.stdin.isatty():
        message = "a person must approve, and there is no terminal to ask at."
        raise spec_error("register.approval", message, "Pass --yes.")


def _ask(file: PipelineFile, progress: Any) -> bool:
    target = file.spec.registration
    with progress.paused():
        try:
            return click.confirm(f"Register the model as {target.model if target else ''}?", err=True)
        except click.Abort:
            raise KeyboardInterrupt from None


def _describe(folder: RunFolder, outcome: PipelineOutcome) -> dict[str, Any]:
    train = outcome.values.get("train", {})
    tracking = TrackingRef.read(folder.tracking)
    return {
        "run_id": folder.run_id,
        "state": outcome.state,
        "mlflow_run_id": tracking.run_id if tracking else None,
        "steps": train.get("steps"),
        "metrics": train.get("metrics", {}),
        "evaluation": outcome.values.get("evaluate", {}).get("metrics", {}),
        "weights_sha256": train.get("weights_sha256"),
        "weights_norm": train.get("weights_norm"),
        "model_path": str(folder.model) if train and (folder.model / "MLmodel").exists() else None,
        "registered": outcome.values.get("register_model") or None,
        "error": None if outcome.error is None else str(outcome.error) or "interrupted",
    }


def _summarise(folder: RunFolder, outcome: PipelineOutcome) -> str:
    described = _describe(folder, outcome)
    registered = described["registered"]
    model = described["model_path"] or "none"
    version = f"\nregistered  {registered['model']} version {registered['version']}" if registered else ""
    metrics = f"metrics     {_render(described['metrics'])}\nevaluation  {_render(described['evaluation'])}"
    return f"run         {folder.run_id}: {outcome.state}\n{metrics}\nmodel       {model}{version}"


def _render(metrics: dict[str, float | None]) -> str:
    """Return metrics as they are read; JSON has no number for one that is none, and says null."""
    return "  ".join(f"{name} {'nan' if one is None else f'{one:.4g}'}" for name, one in metrics.items()) or "none"


def _fail(error: BaseException, folder: RunFolder) -> NoReturn:
    if isinstance(error, SpecError):
        raise error
    click.echo(f"Nothing is left running. Resume: ganger run --resume {folder.run_id}", err=True)
    if isinstance(error, GangerError):
        raise error
    raise KeyboardInterrupt
