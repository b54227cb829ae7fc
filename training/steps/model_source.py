"""Reads the user's model file without importing it, so that its mistakes are told before any process starts."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping
from pathlib import Path

from training.entrypoint import find_file
from training.errors import Problem, SpecError
from training.model_file import BUILD_MODEL, COMPANIONS, parse_model_entrypoint
from training.names import say_nearest
from training.plan.framework import Framework, choose_environment, choose_framework, list_frameworks
from training.spec.dataset_rules import find_dataset_problems
from training.spec.file import PipelineFile
from training.spec.pipeline import BUILD_DATASET, DataSpec, ModelSpec, PipelineSpec
from training.spec.train import HorovodTrain
from training.spec.wording import list_words
from training.steps.imports import list_imports
from training.steps.uncalled import find_uncalled_problems


def find_model_problems(file: PipelineFile) -> tuple[Problem, ...]:
    """Return what is wrong with the model file as far as its text shows; empty when it looks right.

    A module may be installed in the engine's environment alone, so that one that is not found is no mistake yet.
    """
    model = file.spec.model
    if model is None:
        return ()
    try:
        path = find_source(file)
    except SpecError as error:
        return error.problems
    if path is None:
        return ()
    return (*_check_framework(path, file.spec), *_check_source(path, file.spec, model))


def _check_framework(path: Path, spec: PipelineSpec) -> tuple[Problem, ...]:
    """Return a problem for a file of another framework; one that imports both, or neither, may be for ours.

    Under Horovod, the file's framework is the one that trains.
    """
    wanted, found = choose_environment(spec), list_frameworks(list_imports(path))
    if spec.model is None or spec.train.engine == "horovod" or not found or wanted in found:
        return ()
    (other,) = found
    message = (
        f"must be written for the framework that engine {spec.train.engine} trains. "
        f"Received: {spec.model.entrypoint}, which imports {other} alone."
    )
    return (Problem(field="model.entrypoint", message=message, remedy=f"Say train.engine: {other}."),)


def imports_mlflow(file: PipelineFile) -> bool:
    """Whether the model file imports MLflow, by its text; what it imports from beside it is not looked at."""
    path = find_source(file)
    return path is not None and any(name.partition(".")[0] == "mlflow" for name in list_imports(path))


def find_source(file: PipelineFile) -> Path | None:
    """Return the model file; None where there is none, or where a module is not found or has no text.

    Raises:
        SpecError: The path names no file, or a function is named.
    """
    if file.spec.model is None:
        return None
    path = find_file(parse_model_entrypoint(file.spec.model, file.base_dir))
    return path if path is not None and path.suffix == ".py" else None


def _check_source(path: Path, spec: PipelineSpec, model: ModelSpec) -> tuple[Problem, ...]:
    entrypoint = model.entrypoint
    try:
        tree = ast.parse(path.read_bytes(), filename=str(path))
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None) or "?"
        message = f"must be Python that can be parsed. Received: {entrypoint}, line {line}: {error.args[0]}."
        return (Problem(field="model.entrypoint", message=message),)
    names = _top_level_names(tree)
    if BUILD_MODEL not in names and "*" not in names:
        message = f"must have a function {BUILD_MODEL}. Received: {entrypoint}, which has none."
        return (Problem(field="model.entrypoint", message=message, remedy=f"Add: def {BUILD_MODEL}(**params)."),)
    others = {name: names[name] for name in COMPANIONS if name in names}
    problems = _check_params(names.get(BUILD_MODEL), others, tuple(model.params))
    if spec.data is not None and spec.builds_dataset:
        problems = (*problems, *_check_dataset(names, entrypoint, spec.data))
    framework = _choose_framework(spec, list_imports(path))
    called = find_uncalled_problems(tree, entrypoint, framework, names) if framework else ()
    return (*problems, *called)


def _choose_framework(spec: PipelineSpec, imports: Collection[str]) -> Framework | None:
    """Return the framework that the file must be written for; None where it is for another one, or for several."""
    found = list_frameworks(imports)
    is_open = isinstance(spec.train, HorovodTrain) and spec.train.framework is None
    wanted = choose_framework(imports) if is_open else choose_environment(spec)
    return wanted if found <= {wanted} else None


def _check_dataset(names: dict[str, ast.AST], entrypoint: str, data: DataSpec) -> tuple[Problem, ...]:
    """Return what is wrong with `build_dataset`: that it must be there, and take what it is called with."""
    if BUILD_DATASET not in names and "*" not in names:
        message = f"needs a function {BUILD_DATASET} in the model file. Received: {entrypoint}, which has none."
        remedy = f"Add: def {BUILD_DATASET}(split, batch_size, seed)."
        return (Problem(field="data.source", message=message, remedy=remedy),)
    known = _list_parameters(names.get(BUILD_DATASET))
    return () if known is None else find_dataset_problems(known, data)


def _top_level_names(tree: ast.Module) -> dict[str, ast.AST]:
    """Return what a module binds; whatever is nested deeper counts too, since an `if` or `try` may bind it."""
    names: dict[str, ast.AST] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names[node.name] = node
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {alias.asname or alias.name: node for alias in node.names}
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.setdefault(node.id, node)
    return names


def _check_params(
    function: ast.AST | None, others: Mapping[str, ast.AST], params: tuple[str, ...]
) -> tuple[Problem, ...]:
    """Return a problem for each parameter that no function of the file takes."""
    known = {BUILD_MODEL: _list_parameters(function)}
    known |= {name: _list_parameters(other) for name, other in others.items()}
    if None in known.values():
        return ()
    takers = {name: own for name, own in known.items() if own or name == BUILD_MODEL}
    every = {name for own in takers.values() for name in own or ()}
    shown = list_words(f"{name}({', '.join(own or ())})" for name, own in takers.items())
    return tuple(
        Problem(
            field=f"model.params.{name}",
            message=f"must be a parameter of {shown}.",
            remedy=say_nearest(name, every),
        )
        for name in params
        if name not in every
    )


def _list_parameters(function: ast.AST | None) -> list[str] | None:
    """Return the names of a function's parameters; None where they are not to be known from the text."""
    if not isinstance(function, ast.FunctionDef) or function.args.kwarg or function.decorator_list:
        return None
    return [argument.arg for argument in (*function.args.args, *function.args.kwonlyargs)]
