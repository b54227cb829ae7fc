"""The trained model as a folder in MLflow's format, which all its tools load: written whole, loaded once to be sure."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import mlflow.tensorflow

from training.engines.saved_model import check_saved, describe_signature, gather_code, lift, list_requirements
from training.engines.tensorflow_keras.keras_model import OWN_CLASSES
from training.errors import WorkerError
from training.model_file import ModelFile
from training.run.atomic import new_folder

#: What loading the model needs; named here because MLflow would run the model in a process of its own to find out.
_PACKAGES = ("tensorflow", "tensorflow-cpu", "keras", "numpy")


def save_model(model: Any, example: Any, file: ModelFile, path: Path) -> None:
    """Save `model` at `path`, in the place of what an earlier try left there.

    Args:
        model: An ordinary model, built outside of any strategy.
        example: Features of a few rows.
        file: Where the model's code is; a user's file goes along.
        path: The folder.

    Raises:
        WorkerError: The model cannot be saved, or what was saved does not load or predicts something else.
        InfrastructureError: The disk is full.
    """
    predicted = model.predict(example, verbose=0)
    with new_folder(path) as folder, tempfile.TemporaryDirectory() as code:
        try:
            mlflow.tensorflow.save_model(
                model,
                str(folder / "model"),
                signature=describe_signature(example, predicted),
                input_example=example,
                pip_requirements=list_requirements(_PACKAGES),
                code_paths=gather_code(file.path, Path(code)) if file.path else None,
            )
        except OSError:
            raise  # a full disk is no fault of the model
        except Exception as error:
            raise WorkerError(
                f"the model must be savable in Keras' format. Received: {type(error).__name__}: {error}"
            ) from error
        lift(folder / "model", folder)
        check_saved(folder, example, predicted, OWN_CLASSES)
