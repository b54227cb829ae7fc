"""The trained model as a folder in MLflow's format, which all its tools load: written whole, loaded once to be sure."""

from __future__ import annotations

import contextlib
import importlib.metadata
import io
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import mlflow
import mlflow.tensorflow
import numpy as np
from mlflow.models import ModelSignature
from mlflow.types.schema import Schema, TensorSpec

from training.data.dataset import Dataset
from training.engines.tensorflow_keras.keras_model import OWN_CLASSES
from training.errors import WorkerError
from training.model_file import ModelFile
from training.run.atomic import new_folder

_EXAMPLE_ROWS = 2
#: What loading the model needs; named here because MLflow would run the model in a process of its own to find out.
_PACKAGES = ("tensorflow", "tensorflow-cpu", "keras", "numpy")


def save_model(model: Any, dataset: Dataset, file: ModelFile, path: Path) -> None:
    """Save `model` at `path`, in the place of what an earlier try left there.

    Args:
        model: An ordinary model, built outside of any strategy.
        dataset: Gives the example of an input.
        file: Where the model's code is; a user's file goes along.
        path: The folder.

    Raises:
        WorkerError: The model cannot be saved, or what was saved does not load or predicts something else.
        InfrastructureError: The disk is full.
    """
    example = np.array(dataset.x[:_EXAMPLE_ROWS])
    predicted = model.predict(example, verbose=0)
    with new_folder(path) as folder, tempfile.TemporaryDirectory() as code:
        try:
            mlflow.tensorflow.save_model(
                model,
                str(folder / "model"),
                signature=describe_signature(example, predicted),
                input_example=example,
                pip_requirements=list_requirements(),
                code_paths=gather_code(file.path, Path(code)) if file.path else None,
            )
        except OSError:
            raise  # a full disk is no fault of the model
        except Exception as error:
            raise WorkerError(
                f"the model must be savable in Keras' format. Received: {type(error).__name__}: {error}"
            ) from error
        _lift(folder / "model", folder)
        check_saved(folder, example, predicted)


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


def check_saved(folder: Path, example: Any, predicted: Any) -> None:
    """Load a saved model as any user of MLflow would, and compare what it predicts.

    Raises:
        WorkerError: It does not load, or predicts something else.
    """
    try:
        with contextlib.redirect_stdout(io.StringIO()):  # MLflow lets Keras draw a progress bar
            again = mlflow.pyfunc.load_model(str(folder)).predict(example)
    except Exception as error:
        raise WorkerError(
            f"the saved model must load again. Received: {type(error).__name__}: {error}. {OWN_CLASSES}"
        ) from error
    if isinstance(predicted, np.ndarray) and not np.allclose(again, predicted, rtol=1e-4, atol=1e-5, equal_nan=True):
        difference = float(np.max(np.abs(np.asarray(again) - predicted)))
        raise WorkerError(
            f"the saved model must predict what the trained one does. Received: a difference of {difference:.3g}."
        )


def describe_signature(example: Any, predicted: Any) -> ModelSignature:
    """Return MLflow's description of inputs and outputs; the number of rows is open."""
    inputs = Schema([TensorSpec(example.dtype, (-1, *example.shape[1:]))])
    if not isinstance(predicted, np.ndarray):
        return ModelSignature(inputs=inputs)
    return ModelSignature(inputs=inputs, outputs=Schema([TensorSpec(predicted.dtype, (-1, *predicted.shape[1:]))]))


def list_requirements() -> list[str]:
    """Return the pinned packages that loading the model needs, as far as they are installed here."""
    installed = {name: _find_version(name) for name in _PACKAGES}
    return [f"{name}=={version}" for name, version in installed.items() if version]


def _find_version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _lift(inner: Path, outer: Path) -> None:
    """Move everything in `inner` up: MLflow refuses to save into a folder that exists."""
    for path in inner.iterdir():
        path.rename(outer / path.name)
    inner.rmdir()
