"""`ganger plan`: what would run where, before anything starts."""

from __future__ import annotations

from pathlib import Path

import click

from training.commands.options import json_option, load, set_option, spec_argument
from training.plan.built import find_absent
from training.plan.render import render_plan
from training.settings import read_home


@click.command()
@spec_argument
@set_option
@json_option
def plan(spec: Path, overrides: tuple[str, ...], as_json: bool) -> None:
    """Print what SPEC would run: ranks, threads, environment, batches, steps, files."""
    from training.data.facts import read_facts
    from training.plan.run_plan import plan_run
    from training.steps.machine import read_machine

    file = load(spec, overrides)
    machine = read_machine()
    result = plan_run(file.spec, machine, read_facts(file.spec.data, file.base_dir, read_home()))
    if as_json:
        click.echo(result.model_dump_json(indent=2))
        return
    click.echo(render_plan(result))
    for problem in find_absent(file.spec, machine):
        click.echo(f"not possible  {problem}")
