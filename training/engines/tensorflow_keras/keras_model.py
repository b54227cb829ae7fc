"""From the user's model file to a compiled Keras model with all its variables."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import keras
from keras.src.utils.naming import reset_uids

from training.engines.tensorflow_keras.fine_tuning import freeze_layers
from training.engines.tensorflow_keras.rows import Batch
from training.engines.tensorflow_keras.shims.symbolic_build import build_from_batch
from training.errors import SpecError, WorkerError, spec_error
from training.model_file import BUILD_MODEL, ModelFile

#: Strategies under which `BatchNormalization(synchronized=True)` counts the rows of all replicas.
SYNCHRONIZING = ("mirrored", "central_storage", "multi_worker_mirrored", "tpu")
_IN_BOLD = re.compile(r"\x1b\[\d*m")
#: What Keras asks of classes and functions that it is to find again.
OWN_CLASSES = "Own models, layers and losses need @keras.saving.register_keras_serializable() and get_config()."


def build_keras_model(file: ModelFile, example: Batch, seed: int, freeze: Sequence[str] = ()) -> Any:
    """Return the compiled model with all variables made; call it in the strategy's scope.

    The random state is set first: the same seed gives the same first weights on every rank and at every number of
    ranks. So are the names that Keras gives to layers without one.

    Raises:
        SpecError: `build_model` returned something else than a compiled Keras 3 model, or `freeze` names no layer.
        WorkerError: It raised, or the model does not take the rows.
    """
    reset_uids()
    keras.utils.set_random_seed(seed)
    model = file.build_model()
    check_keras_model(model, file.entrypoint)
    if model.steps_per_execution != 1:
        print(f"steps_per_execution {model.steps_per_execution} is set to 1: every step is watched", flush=True)
        model.steps_per_execution = 1
    freeze_layers(model, freeze)
    try:
        build_from_batch(model, example)
    except Exception as error:
        raise WorkerError(
            f"the model of {file.entrypoint} must take rows of shape {describe_shape(example[0])} "
            f"with labels of shape {describe_shape(example[1])}. Received: {say_error(error)}"
        ) from error
    return model


def say_error(error: Exception) -> str:
    r"""Return what an exception says in one line; Keras adds where in its calls that was, and sets some of it in bold.

    >>> said = "Exception encountered when calling Dense.call().\n\nNo room.\n\nArguments received by Dense.call():\n"
    >>> say_error(ValueError(said))
    'ValueError: No room.'
    """
    said = _IN_BOLD.sub("", str(error)).partition("\n\nArguments received by ")[0].splitlines()
    telling = [line.strip() for line in said if line and not line.startswith("Exception encountered when calling ")]
    return f"{type(error).__name__}: {' '.join(telling)}"


def describe_shape(example: Any) -> str:
    """Return shape and type of one row, or of each part that it has.

    >>> describe_shape({"text": np.zeros((2, 5)), "age": np.zeros((2,), "int32")})
    'text [5] (float64), age [] (int32)'
    """
    if isinstance(example, Mapping):
        return ", ".join(f"{name} {describe_shape(part)}" for name, part in example.items())
    if isinstance(example, list | tuple):
        return ", ".join(map(describe_shape, example))
    return f"{list(example.shape[1:])} ({example.dtype})"


def describe_normalization(model: Any, strategy: str, replicas: int) -> str:
    """Return that layers count the rows of each replica by themselves, in words; empty where none does.

    Random layers apart, they alone make other weights of the same global batches.
    """
    layers = model._flatten_layers(include_self=False) if replicas > 1 else ()
    can_synchronize = strategy in SYNCHRONIZING
    names = [
        layer.name
        for layer in layers
        if isinstance(layer, keras.layers.BatchNormalization) and not (layer.synchronized and can_synchronize)
    ]
    if not names:
        return ""
    remedy = ", unless it has synchronized=True" if can_synchronize else ""
    return (
        f"{', '.join(names)}: counts the rows of each replica by itself, so that weights depend on their number{remedy}"
    )


def check_savable(model: Any, entrypoint: str) -> None:
    """Check, before any training, that `model` can be made again from its configuration, as loading it will.

    Call it outside of the strategy's scope: a second model is made here, and given up at once.

    Raises:
        WorkerError: It cannot.
    """
    try:
        keras.models.model_from_json(model.to_json())
    except Exception as error:
        raise WorkerError(
            f"the model of {entrypoint} must be savable in Keras' format. "
            f"Received: {type(error).__name__}: {error}. {OWN_CLASSES}"
        ) from error


def check_keras_model(model: object, entrypoint: str) -> None:
    """Check what `build_model` returned.

    Raises:
        SpecError: It is no compiled Keras 3 model.
    """
    if not isinstance(model, keras.Model):
        raise _refuse(entrypoint, *_describe_stranger(model))
    if not getattr(model, "compiled", False):
        raise _refuse(
            entrypoint, "a model that is not compiled", "Call model.compile(optimizer, loss, ...) before returning it."
        )
    if model.optimizer is None:
        raise _refuse(entrypoint, "a model without an optimizer", "Give model.compile an optimizer.")


def _describe_stranger(model: object) -> tuple[str, str]:
    lineage = {base.__module__.partition(".")[0] for base in type(model).__mro__}
    if "tf_keras" in lineage:  # K09
        return "a model of tf_keras, the legacy Keras 2", "Import keras, not tf_keras, and unset TF_USE_LEGACY_KERAS."
    if model is None:
        return "nothing", "Does it end in `return model`?"
    return f"a {type(model).__module__}.{type(model).__qualname__}", ""


def _refuse(entrypoint: str, received: str, remedy: str) -> SpecError:
    return spec_error(
        "model.entrypoint",
        f"{BUILD_MODEL} of {entrypoint} must return a compiled keras.Model (Keras {keras.__version__}). "
        f"Received: {received}.",
        remedy,
    )
