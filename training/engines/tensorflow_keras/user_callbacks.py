"""The callbacks of the model file: made on every rank, alike, and set to where they were when a training goes on."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np

from training.engines.tensorflow_keras.training_job import TrainingJob
from training.errors import spec_error

#: Keras' own that write files: of all ranks only the chief may (K34).
_WRITERS = (
    keras.callbacks.BackupAndRestore,
    keras.callbacks.CSVLogger,
    keras.callbacks.ModelCheckpoint,
    keras.callbacks.TensorBoard,
)

States = tuple[Mapping[str, Any], ...]


def build_callbacks(job: TrainingJob) -> list[keras.callbacks.Callback]:
    """Return what `build_callbacks` of the model file returns; on ranks other than the chief without what writes files.

    Raises:
        SpecError: It returned something else than Keras callbacks.
    """
    if job.file.build_callbacks is None:
        return []
    callbacks = job.file.build_callbacks()
    strangers = (
        [callbacks]
        if not isinstance(callbacks, list | tuple)
        else [callback for callback in callbacks if not isinstance(callback, keras.callbacks.Callback)]
    )
    if strangers:
        raise spec_error(
            "model.entrypoint",
            f"build_callbacks of {job.file.entrypoint} must return a list of keras.callbacks.Callback. "
            f"Received: {type(strangers[0]).__name__}.",
        )
    if job.ctx.is_chief:
        return list(callbacks)
    return [callback for callback in callbacks if not isinstance(callback, _WRITERS)]


def describe_callbacks(callbacks: Sequence[keras.callbacks.Callback]) -> States:
    """Return the plain numbers, texts and truth values that each callback remembers, such as EarlyStopping's `wait`."""
    return tuple(
        {name: _plain(value) for name, value in vars(callback).items() if _is_plain(name, value)}
        for callback in callbacks
    )


def restore_callbacks(callbacks: Sequence[keras.callbacks.Callback], states: States) -> None:
    """Have callbacks remember what `describe_callbacks` found, where they are as many as then."""
    if len(callbacks) == len(states):
        for callback, state in zip(callbacks, states, strict=True):
            vars(callback).update(state)


def _is_plain(name: str, value: object) -> bool:
    if name.startswith("_"):
        return False
    return isinstance(value, str) or (isinstance(value, numbers.Real) and math.isfinite(value))


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
