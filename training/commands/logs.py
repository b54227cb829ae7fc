"""`ganger logs`: what the ranks of a run printed."""

from __future__ import annotations

import click

from training.commands.options import find_run, run_argument
from training.errors import spec_error
from training.run.folder import JobFolder
from training.run.follow import follow


@click.command()
@run_argument
@click.option("--job", "name", default="train", show_default=True, help="Step whose log is wanted.")
@click.option("--rank", type=click.IntRange(min=0), help="Only this rank, as it printed it.")
@click.option("--follow", "-f", "following", is_flag=True, help="Go on until the step ends.")
def logs(run_id: str, name: str, rank: int | None, following: bool) -> None:
    """Print the log of RUN: whole lines of all ranks, or the unchanged output of one."""
    run = find_run(run_id)
    job = run.job(name)
    if job.path.name not in {known.path.name for known in run.jobs()}:
        steps = ", ".join(known.path.name for known in run.jobs()) or "none yet"
        raise spec_error("--job", f"must be a step of {run.run_id}. Received: {name}.", f"There are: {steps}.")
    if following and rank is None and job.job.exists():
        follow(job, on_line=click.echo, lease=False)
        return
    path = job.merged_log if rank is None else job.rank_log(rank)
    if not path.exists():
        raise spec_error("", f"step {name} of {run_id} has no log{_of(rank)}.", _list_logs(job))
    with path.open(errors="replace") as stream:
        for line in stream:
            click.echo(line, nl=False)


def _of(rank: int | None) -> str:
    return "" if rank is None else f" of rank {rank}"


def _list_logs(job: JobFolder) -> str:
    ranks = sorted(path.stem for path in (job.path / "logs").glob("rank-*.log"))
    return f"There are: {', '.join(ranks)}." if ranks else "No rank has printed anything yet."
