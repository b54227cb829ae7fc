"""`ganger plan`: what would run where, before anything starts."""

from __future__ import annotations

from pathlib import Path

import click

from training.commands.options import json_option, load, set_option, spec_argument
from training.plan.built import find_absent, find_unfit
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
    from training.steps.framework import recognise_framework
    from training.steps.initial_model import find_initial_model_problems
    from training.steps.machine import read_machine
    from training.steps.split import SplitReport, read_split
    from training.steps.user_code import find_code_problems

    file = recognise_framework(load(spec, overrides))
    machine = read_machine()
    data = file.spec.data
    facts = read_facts(data, file.base_dir, read_home()) if data is not None and file.spec.prepares_data else None
    result = plan_run(file.spec, machine, facts)
    in_code = find_code_problems(file)
    unfit = [*find_unfit(file.spec, machine), *in_code, *find_initial_model_problems(file)]
    cannot_build = in_code or find_absent(file.spec, machine)
    split = SplitReport() if cannot_build else read_split(file, machine.environments[result.environment], facts)
    problems = (*result.problems, *map(str, unfit), *filter(None, [split.problem]))
    result = result.model_copy(update={"problems": problems, "stages": split.stages or result.stages})
    click.echo(result.model_dump_json(indent=2) if as_json else render_plan(result))
