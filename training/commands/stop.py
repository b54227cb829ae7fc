"""`ganger stop`: end a run."""

from __future__ import annotations

import click

from training.commands.options import find_run, run_argument
from training.steps.context import StepContext, read_run
from training.steps.teardown import teardown_cluster


@click.command()
@run_argument
def stop(run_id: str) -> None:
    """End what RUN still has running, release its cluster and close its MLflow run. Safe to repeat."""
    run = find_run(run_id)
    teardown_cluster(StepContext(file=read_run(run).to_file(), run=run, log=click.echo), reason="ganger stop")
