"""The folder of a trained model in MLflow's format: what belongs in it whatever the framework, and whether it loads."""

from __future__ import annotations

import contextlib
import importlib.metadata
import io
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import mlflow
import numpy as np
from mlflow.models import ModelSignature
from mlflow.types.schema import Schema, TensorSpec

from training.errors import WorkerError


def gather_code(path: Path, target: Path) -> list[str]:
    """Copy the user's code that loading the model needs into `target`, and return what then lies there.

    That is the model file and every module that was imported from its folder, each where its name will find it.
    """
    for name, file in find_code(path).items():
        package, plain = _list_places(target, name)
        copy = package if file.name == package.name else plain
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copy)
    return sorted(str(entry) for entry in target.iterdir())


def find_code(path: Path) -> dict[str, Path]:
    """Return the imported model file `path` and the loaded modules beside and below it, by module name.

    A module counts whose file is where its name says, seen from the folder: an environment that happens to lie below
    it does not. The model file counts under any name: it has another one where a package had taken its own.
    """
    files = {name: str(getattr(module, "__file__", None) or "") for name, module in list(sys.modules.items())}
    return {
        name: Path(file)
        for name, file in files.items()
        if name.partition(".")[0] not in ("training", "__main__")
        and any(_is_same(place, file) for place in (path, *_list_places(path.parent, name)))
    }


def _list_places(folder: Path, module: str) -> tuple[Path, Path]:
    place = folder.joinpath(*module.split("."))
    return place / "__init__.py", place.with_name(f"{place.name}.py")


def _is_same(place: Path, file: str) -> bool:
    return Path(file).name == place.name and place.exists() and place.samefile(file)


def check_saved(folder: Path, example: Any, predicted: Any, remedy: str = "") -> None:
    """Load a saved model as any user of MLflow would, and compare what it predicts.

    Args:
        folder: In MLflow's format.
        example: Rows.
        predicted: What the trained model says of them.
        remedy: What to do where it does not load.

    Raises:
        WorkerError: It does not load, or predicts something else.
    """
    try:
        with contextlib.redirect_stdout(io.StringIO()):  # MLflow lets Keras draw a progress bar
            again = mlflow.pyfunc.load_model(str(folder)).predict(example)
    except Exception as error:
        raise WorkerError(
            f"the saved model must load again. Received: {type(error).__name__}: {error}. {remedy}".rstrip()
        ) from error
    pairs = list(_pair_leaves(again, predicted))
    if not all(np.allclose(one, other, rtol=1e-4, atol=1e-5, equal_nan=True) for one, other in pairs):
        difference = max(float(np.max(np.abs(np.asarray(one) - other))) for one, other in pairs)
        raise WorkerError(
            f"the saved model must predict what the trained one does. Received: a difference of {difference:.3g}."
        )


def _pair_leaves(again: Any, predicted: Any) -> Iterator[tuple[Any, Any]]:
    """Yield what two predictions say of the same output; nothing for outputs that are no arrays."""
    if isinstance(predicted, Mapping):
        for name, part in predicted.items():
            yield from _pair_leaves(again[name], part)
    elif isinstance(predicted, list | tuple):
        for one, part in zip(again, predicted, strict=True):
            yield from _pair_leaves(one, part)
    elif isinstance(predicted, np.ndarray):
        yield again, predicted


def describe_signature(example: Any, predicted: Any) -> ModelSignature | None:
    """Return MLflow's description of inputs and outputs; the number of rows is open.

    None for inputs that MLflow has no words for: several without names.
    """
    inputs = _describe(example)
    return None if inputs is None else ModelSignature(inputs=inputs, outputs=_describe(predicted))


def _describe(arrays: Any) -> Schema | None:
    if isinstance(arrays, np.ndarray):
        return Schema([TensorSpec(arrays.dtype, (-1, *arrays.shape[1:]))])
    if isinstance(arrays, Mapping) and all(isinstance(array, np.ndarray) for array in arrays.values()):
        return Schema([TensorSpec(array.dtype, (-1, *array.shape[1:]), name) for name, array in arrays.items()])
    return None


def list_requirements(packages: Iterable[str]) -> list[str]:
    """Return those of `packages` that are installed here, pinned."""
    installed = {name: _find_version(name) for name in packages}
    return [f"{name}=={version}" for name, version in installed.items() if version]


def _find_version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def lift(inner: Path, outer: Path) -> None:
    """Move everything in `inner` up: MLflow refuses to save into a folder that exists."""
    for path in inner.iterdir():
        path.rename(outer / path.name)
    inner.rmdir()
