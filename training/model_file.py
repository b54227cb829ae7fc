"""The user's model file: found, imported, and its `build_model` checked against `model.params`. Knows no framework."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from training.arguments import check_arguments, choose_arguments
from training.entrypoint import Entrypoint, get_function, import_entrypoint, parse_entrypoint
from training.errors import spec_error
from training.spec.pipeline import ModelSpec

BUILD_MODEL = "build_model"
BUILD_CALLBACKS = "build_callbacks"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFile:
    """A model file that was imported and whose arguments fit.

    Attributes:
        entrypoint: As the spec names it.
        path: The file, for a user's `path.py`; None for a module.
        build: `build_model`.
        params: Its keyword arguments.
        build_callbacks: Returns the callbacks; None where the file has no such function.
    """

    entrypoint: str
    path: Path | None
    build: Callable[..., Any]
    params: dict[str, Any]
    build_callbacks: Callable[[], Any] | None = None

    def build_model(self) -> Any:
        """Call `build_model(**params)`; what it raises is the user's and passes as it is."""
        return self.build(**self.params)


def parse_model_entrypoint(model: ModelSpec, base_dir: Path) -> Entrypoint:
    """Return where the model file is; nothing is looked up.

    Raises:
        SpecError: A function is named.
    """
    entrypoint = parse_entrypoint(model.entrypoint, base_dir, "model.entrypoint")
    if entrypoint.function is not None:
        raise spec_error(
            "model.entrypoint",
            f"must be a module or a path that ends in .py. Received: {model.entrypoint}.",
            f"Leave out :{entrypoint.function}; the function is always {BUILD_MODEL}.",
        )
    return entrypoint


def load_model_file(model: ModelSpec, base_dir: Path) -> ModelFile:
    """Import the model file that the spec names.

    Args:
        model: The block `model` of the spec.
        base_dir: Folder that a relative path counts from.

    Raises:
        SpecError: There is no such file, it cannot be imported, it has no `build_model`, or `model.params` does not
        fit it.
    """
    entrypoint = parse_model_entrypoint(model, base_dir)
    module = import_entrypoint(entrypoint)
    build = get_function(module, BUILD_MODEL, entrypoint)
    if not callable(build):
        raise spec_error("model.entrypoint", f"{BUILD_MODEL} must be a function. Received: a {type(build).__name__}.")
    check_arguments(build, model.params, field="model.params", called=BUILD_MODEL)
    return ModelFile(
        entrypoint=model.entrypoint,
        path=entrypoint.path,
        build=build,
        params=dict(model.params),
        build_callbacks=_find_callbacks(module, model),
    )


def _find_callbacks(module: ModuleType, model: ModelSpec) -> Callable[[], Any] | None:
    """Return `build_callbacks` of the file, given those of `model.params` that it takes; None where there is none."""
    build = getattr(module, BUILD_CALLBACKS, None)
    if build is None:
        return None
    if not callable(build):
        message = f"{BUILD_CALLBACKS} must be a function. Received: a {type(build).__name__}."
        raise spec_error("model.entrypoint", message)
    taken = choose_arguments(build, model.params)
    check_arguments(build, taken, field="model.params", called=BUILD_CALLBACKS)
    return functools.partial(build, **taken)
