"""`ganger doctor`: what this machine has and lacks."""

from __future__ import annotations

import click

from training.cli import EXIT_FAILED
from training.doctor import check_machine


@click.command()
def doctor() -> None:
    """Look at everything that a run needs on this machine, and say what to do about what is missing."""
    checks = check_machine()
    width = max(len(check.name) for check in checks)
    for check in checks:
        mark = click.style("ok     ", fg="green") if check.ok else click.style("MISSING", fg="red")
        click.echo(f"{mark}  {check.name:<{width}}  {check.detail}")
        if check.remedy:
            click.echo(f"{'':9}{'':<{width}}  -> {check.remedy}")
    if not all(check.ok for check in checks):
        raise click.exceptions.Exit(EXIT_FAILED)
