"""Finds functions of a model file that look as if Ganger called them, while nothing does: a default would train.

By the text alone. A function counts as called where its name occurs in the file, be it as a string, and where it has a
decorator, which may keep it somewhere.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Collection, Iterator, Sequence
from typing import Final

from training.errors import Problem
from training.plan.framework import Framework

#: What Ganger calls beside `build_model`, by the framework of the file, with the words that people have for it.
_CALLED: Final[dict[Framework, dict[str, tuple[str, ...]]]] = {
    "tensorflow": {"build_callbacks": ("callbacks", "callback")},
    "mxnet": {
        "build_loss": ("loss", "losses", "lossfn", "lossfunction", "criterion"),
        "build_trainer": ("trainer", "optimizer", "optimiser"),
        "build_metrics": ("metrics", "metric", "evalmetrics", "evalmetric"),
    },
}
_FRAMEWORKS: Final[dict[Framework, str]] = {"tensorflow": "Keras", "mxnet": "MXNet"}
_VERBS: Final = ("build", "make", "create", "get")
#: Nearer than `matrices` is to `metrics`, and `layer` to `trainer`.
_NEAR: Final = 0.85


def find_uncalled_problems(
    tree: ast.Module, entrypoint: str, framework: Framework, bound: Collection[str]
) -> tuple[Problem, ...]:
    """Return a problem for each function that is never called, though its name says that Ganger should.

    Args:
        tree: The model file.
        entrypoint: As the spec names it.
        framework: What the file is written for.
        bound: Names that it binds; with `*` among them, what it binds is not known, and nothing is found.
    """
    if "*" in bound:
        return ()
    mentioned = set(_iter_mentioned(tree))
    return tuple(
        problem
        for function in _iter_functions(tree.body)
        if function.name not in mentioned and not function.decorator_list and not function.name.startswith("_")
        for problem in _check_name(function, entrypoint, framework, bound)
    )


def choose_meant(name: str, framework: Framework) -> str | None:
    """Return which function of a model file somebody meant who called it `name`.

    >>> choose_meant("make_losses", "mxnet"), choose_meant("buildTrainr", "mxnet"), choose_meant("optimize", "mxnet")
    ('build_loss', 'build_trainer', None)
    """
    words = {word: function for function, known in _CALLED[framework].items() for word in known}
    has_verb, rest = _split_verb(name)
    near = difflib.get_close_matches(rest, list(words), n=1, cutoff=_NEAR if has_verb else 1.0)
    return words[near[0]] if near else None


def _check_name(
    function: ast.FunctionDef, entrypoint: str, framework: Framework, bound: Collection[str]
) -> Iterator[Problem]:
    name, here = function.name, _CALLED[framework]
    received = f"Received: {entrypoint}, line {function.lineno}: {name}, which nothing calls"
    meant = choose_meant(name, framework)
    owner = next((other for other, known in _CALLED.items() if name in known), framework)
    if owner != framework:
        message = f"must use what it defines. {received}: Ganger does in files of {_FRAMEWORKS[owner]} alone."
        yield Problem(field="model.entrypoint", message=message, remedy="Call it in the file, or remove it.")
    elif name not in here and meant is not None and meant not in bound:
        message = f"must give a function that Ganger is to call the name that Ganger calls. {received}."
        remedy = f"Rename it to {meant}, or let its name begin with _ if it is something else."
        yield Problem(field="model.entrypoint", message=message, remedy=remedy)


def _split_verb(name: str) -> tuple[bool, str]:
    """Return whether a name has a verb in front, if need be misspelt, and the rest in small letters, in one piece."""
    first, _, rest = name.lower().partition("_")
    if rest and difflib.get_close_matches(first, _VERBS, n=1, cutoff=0.75):
        return True, rest.replace("_", "")
    joined = name.lower().replace("_", "")
    verb = next((verb for verb in _VERBS if joined.startswith(verb)), "")
    return bool(verb), joined.removeprefix(verb)


def _iter_functions(body: Sequence[ast.stmt]) -> Iterator[ast.FunctionDef]:
    """Yield the functions that a module has, those under an `if` or `try` included."""
    for statement in body:
        if isinstance(statement, ast.FunctionDef):
            yield statement
        elif isinstance(statement, ast.If | ast.Try):
            handlers = [one for handler in getattr(statement, "handlers", ()) for one in handler.body]
            yield from _iter_functions([*statement.body, *handlers, *statement.orelse])


def _iter_mentioned(tree: ast.Module) -> Iterator[str]:
    """Yield what is read by name, as an attribute, or written as a string (`__all__`, `getattr`)."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Load()) | ast.Attribute(attr=name) | ast.Constant(value=str(name)):
                yield name
            case _:
                pass
