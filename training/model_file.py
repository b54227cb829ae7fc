"""The user's model file: found, imported, and its `build_model` checked against `model.params`. Knows no framework."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from training.arguments import check_arguments, check_taken, choose_arguments
from training.entrypoint import Entrypoint, get_function, import_entrypoint, parse_entrypoint
from training.errors import spec_error
from training.spec.pipeline import BUILD_DATASET, ModelSpec

BUILD_MODEL = "build_model"
#: What may stand beside it: `build_callbacks` of a Keras file; the others of a Gluon file.
COMPANIONS = ("build_callbacks", "build_loss", "build_trainer", "build_metrics")
#: What blocks and losses of Gluon, and models and layers of Keras have: they can be called too, but with rows.
_OF_BLOCKS = ("collect_params", "trainable_weights")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFile:
    """A model file that was imported and whose arguments fit.

    Attributes:
        entrypoint: As the spec names it.
        path: The file, for a user's `path.py`; None for a module.
        build: `build_model`.
        params: Keyword arguments; each function gets those that it takes.
        build_callbacks: Returns Keras callbacks; None where the file has no such function.
        build_loss: Returns a loss of Gluon, likewise.
        build_trainer: Returns a trainer of Gluon for the parameters that it is given, likewise.
        build_metrics: Returns metrics of MXNet, likewise.
        build_dataset: Returns a `tf.data` pipeline; None where the file has no such function.
    """

    entrypoint: str
    path: Path | None
    build: Callable[..., Any]
    params: dict[str, Any]
    build_callbacks: Callable[[], Any] | None = None
    build_loss: Callable[[], Any] | None = None
    build_trainer: Callable[[Any], Any] | None = None
    build_metrics: Callable[[], Any] | None = None
    build_dataset: Callable[..., Any] | None = None

    def build_model(self) -> Any:
        """Call `build_model(**params)`; what it raises is the user's and passes as it is."""
        return self.build(**choose_arguments(self.build, self.params))


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
    build = _require_function(build, BUILD_MODEL, model)
    companions = {name: _find_companion(module, name, model) for name in COMPANIONS}
    others = {name: function for name, function in companions.items() if function}
    check_taken({BUILD_MODEL: build, **others}, model.params, field="model.params")
    check_arguments(build, choose_arguments(build, model.params), field="model.params", called=BUILD_MODEL)
    return ModelFile(
        entrypoint=model.entrypoint,
        path=entrypoint.path,
        build=build,
        params=dict(model.params),
        **{name: _bind(function, name, model) for name, function in others.items()},
        build_dataset=_find_companion(module, BUILD_DATASET, model),
    )


def _find_companion(module: ModuleType, name: str, model: ModelSpec) -> Callable[..., Any] | None:
    """Return the function `name` of the file, or None where there is none."""
    function = getattr(module, name, None)
    return None if function is None else _require_function(function, name, model)


def _require_function(value: object, name: str, model: ModelSpec) -> Callable[..., Any]:
    """Return `value`, which may be whatever makes something when it is called: a class does, a block does not."""
    if callable(value) and not any(hasattr(type(value), attribute) for attribute in _OF_BLOCKS):
        return value
    message = f"{name} of {model.entrypoint} must be a function. Received: a {type(value).__name__}."
    raise spec_error("model.entrypoint", message, f"Write: def {name}(): return ….")


def _bind(function: Callable[..., Any], name: str, model: ModelSpec) -> Callable[..., Any]:
    """Return `function`, given those of `model.params` that it takes; `build_trainer` is given parameters first."""
    taken = choose_arguments(function, model.params)
    bound = functools.partial(function, None) if name == "build_trainer" else function
    check_arguments(bound, taken, field="model.params", called=name)
    return functools.partial(function, **taken)
