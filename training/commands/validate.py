"""`ganger validate`: every mistake of every file, before anything runs."""

from __future__ import annotations

from pathlib import Path

import click

from training.cli import EXIT_USER
from training.errors import Problem, SpecError
from training.spec.loader import load_pipeline


@click.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
def validate(paths: tuple[Path, ...]) -> None:
    """Check pipeline files (folders: every *.yaml in them) and print all mistakes with their lines."""
    files = [file for path in paths for file in _expand(path)]
    problems = [problem for file in files for problem in _check(file)]
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
        raise click.UsageError(f"{path} must hold pipeline files. Received: a folder without *.yaml.")
    return files


def _check(file: Path) -> tuple[Problem, ...]:
    try:
        load_pipeline(file)
    except SpecError as error:
        for problem in error.problems:
            click.echo(str(problem), err=True)
        return error.problems
    return ()
