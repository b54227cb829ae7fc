"""Checks keyword arguments from a spec against the signature of the user's function before it is called."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from training.errors import Problem, SpecError
from training.names import say_nearest
from training.spec.wording import list_words

_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def check_arguments(function: Callable[..., Any], arguments: Mapping[str, Any], *, field: str, called: str) -> None:
    """Check that `function(**arguments)` can be called.

    Args:
        function: The user's function.
        arguments: What the spec gives.
        field: Field of the spec that gives them, such as `model.params`.
        called: How to call the function in an error.

    Raises:
        SpecError: Unknown or missing arguments; holds the signature and the nearest known names.
    """
    signature = inspect.signature(function)
    parameters = signature.parameters.values()
    known = [p.name for p in parameters if p.kind in _BY_NAME]
    takes_any = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters)
    unknown = [] if takes_any else [name for name in arguments if name not in known]
    required = [p.name for p in parameters if p.kind in _BY_NAME and p.default is inspect.Parameter.empty]
    missing = [name for name in required if name not in arguments]
    shown = f"{called}{signature}"
    problems = [
        Problem(
            field=f"{field}.{name}",
            message=f"must be a parameter of {shown}. Received: {name}.",
            remedy=say_nearest(name, known),
        )
        for name in unknown
    ]
    problems += [
        Problem(
            field=field, message=f"must give {name}, which {shown} has no default for. Received: {sorted(arguments)}."
        )
        for name in missing
    ]
    if problems:
        raise SpecError(problems)


def check_taken(functions: Mapping[str, Callable[..., Any]], arguments: Mapping[str, Any], *, field: str) -> None:
    """Check that each of `arguments` is taken by one of the user's functions at least.

    Args:
        functions: By name, the one first that the arguments are mostly for.
        arguments: What the spec gives.
        field: Field of the spec that gives them.

    Raises:
        SpecError: Some are taken by none; holds the signatures and the nearest known names.
    """
    taken = {name for function in functions.values() for name in choose_arguments(function, arguments)}
    signatures = {name: inspect.signature(function) for name, function in functions.items()}
    first = next(iter(signatures))
    shown = list_words(f"{name}{one}" for name, one in signatures.items() if one.parameters or name == first)
    known = [p.name for one in signatures.values() for p in one.parameters.values() if p.kind in _BY_NAME]
    problems = [
        Problem(
            field=f"{field}.{name}",
            message=f"must be a parameter of {shown}. Received: {name}.",
            remedy=say_nearest(name, known),
        )
        for name in arguments
        if name not in taken
    ]
    if problems:
        raise SpecError(problems)


def choose_arguments(function: Callable[..., Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of `arguments` that `function` takes.

    >>> choose_arguments(lambda patience=3: None, {"patience": 5, "hidden": 8})
    {'patience': 5}
    """
    parameters = inspect.signature(function).parameters.values()
    if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters):
        return dict(arguments)
    known = {p.name for p in parameters if p.kind in _BY_NAME}
    return {name: value for name, value in arguments.items() if name in known}
