"""`ganger validate`: every mistake of every file, before anything runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from training.cli import EXIT_USER
from training.errors import Problem, SpecError, spec_error
from training.spec.loader import load_pipeline
from training.steps.initial_model import find_initial_model_problems
from training.steps.user_code import find_code_problems


@click.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
def validate(paths: tuple[Path, ...]) -> None:
    """Check pipeline files (folders: every *.yaml in them) and print all mistakes with their lines."""
    files = [file for path in paths for file in _expand(path)]
    owners: dict[str, Path] = {}
    problems = [problem for file in files for problem in _check(file, owners)]
    if problems:
        count = "1 mistake" if len(problems) == 1 else f"{len(problems)} mistakes"
        click.echo(f"{count} in {len({problem.file for problem in problems})} of {len(files)} files.", err=True)
        raise click.exceptions.Exit(EXIT_USER)
    click.echo(f"{len(files)} {'file is' if len(files) == 1 else 'files are'} valid.")


def _expand(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    files = sorted([*path.glob("*.yaml"), *path.glob("*.yml")])
    if not files:
        raise spec_error("", f"{path} must hold pipeline files. Received: a folder without *.yaml.")
    return files


def _check(file: Path, owners: dict[str, Path]) -> tuple[Problem, ...]:
    problems = _find_problems(file, owners)
    for problem in problems:
        click.echo(str(problem), err=True)
    return problems


def _find_problems(path: Path, owners: dict[str, Path]) -> tuple[Problem, ...]:
    try:
        file = load_pipeline(path)
    except SpecError as error:
        return error.problems
    problems = [*find_code_problems(file), *find_initial_model_problems(file)]
    owner = owners.setdefault(file.spec.name, path)
    if owner != path:
        message = f"must be the name of one pipeline only. Received: {file.spec.name}, which {owner} has too."
        problems.append(Problem(field="name", message=message, remedy="Rename one."))
    return tuple(replace(problem, file=str(path)) for problem in problems)
