"""Reads the user's training script without running it."""

from __future__ import annotations

import ast
from pathlib import Path

from training.entrypoint import find_file, parse_entrypoint
from training.errors import Problem, SpecError
from training.spec.file import PipelineFile

FIELD = "train.script"
#: The package that this is part of, which a rank has imported before it runs the script.
_OUR_PACKAGE = "training"


def find_script_problems(file: PipelineFile) -> tuple[Problem, ...]:
    """Return what is wrong with the script as far as its text shows; empty when it looks right."""
    script = file.spec.train.script
    if script is None:
        return ()
    if not script.endswith(".py"):
        message = f"must be the path of a Python file, one that ends in .py. Received: {script}."
        return (Problem(field=FIELD, message=message, remedy="Write a small .py file that starts it."),)
    try:
        path = find_file(parse_entrypoint(script, file.base_dir, FIELD))
    except SpecError as error:
        return error.problems
    assert path is not None
    return (*_check_source(path, script), *_check_neighbours(path, script))


def _check_source(path: Path, script: str) -> tuple[Problem, ...]:
    try:
        ast.parse(path.read_bytes(), filename=str(path))
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None) or "?"
        message = f"must be Python that can be parsed. Received: {script}, line {line}: {error.args[0]}."
        return (Problem(field=FIELD, message=message, remedy="Correct the line."),)
    return ()


def _check_neighbours(path: Path, script: str) -> tuple[Problem, ...]:
    names = (f"{_OUR_PACKAGE}.py", _OUR_PACKAGE)
    taken = next((path.parent / name for name in names if (path.parent / name).exists()), None)
    if taken is None or path.parent == Path(__file__).parents[2]:
        return ()
    message = f"must not lie beside a module called {_OUR_PACKAGE}: that is Ganger's own. Received: {script}, {taken}."
    return (Problem(field=FIELD, message=message, remedy="Rename that module, or move the script."),)
