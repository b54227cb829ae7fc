"""The trained model as a folder in MLflow's format, which all its tools load: written whole, loaded once to be sure."""

from __future__ import annotations

import contextlib
import importlib.metadata
import io
import sys
from pathlib import Path
from typing import Any

import mlflow
import mlflow.tensorflow
import numpy as np
from mlflow.models import ModelSignature
from mlflow.types.schema import Schema, TensorSpec

from training import settings
from training.data.dataset import Dataset
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
    with new_folder(path) as folder:
        try:
            mlflow.tensorflow.save_model(
                model,
                str(folder / "model"),
                signature=describe_signature(example, predicted),
                input_example=example,
                pip_requirements=list_requirements(),
                code_paths=find_code(file.path) if file.path else None,
            )
        except OSError:
            raise  # a full disk is no fault of the model
        except Exception as error:
            raise WorkerError(
                f"the model must be savable in Keras' format. Received: {type(error).__name__}: {error}"
            ) from error
        _lift(folder / "model", folder)
        check_saved(folder, example, predicted)


def find_code(path: Path) -> list[str]:
    """Return the user's files that loading the model needs: the model file and what it has imported from its folder."""
    folder = path.resolve().parent
    files = [module.__file__ for module in list(sys.modules.values()) if getattr(module, "__file__", None)]
    beside = {
        folder / Path(file).resolve().relative_to(folder).parts[0]
        for file in files
        if file and Path(file).resolve().is_relative_to(folder) and "site-packages" not in Path(file).parts
    }
    return sorted(str(entry) for entry in {path.resolve(), *beside} - {settings.REPOSITORY / "training"})


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
            f"the saved model must load again. Received: {type(error).__name__}: {error}. Own layers and losses need "
            "@keras.saving.register_keras_serializable() and get_config()."
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
