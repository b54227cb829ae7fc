"""What stages must not share: variables, by their layers or by functions that hold on to them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import keras
import tensorflow as tf

from training.engines.tensorflow_keras.pipelining.splittable import refuse
from training.errors import SpecError


def check_owners(stages: Sequence[Any]) -> None:
    """Check that no two of the `stages` share a variable.

    Raises:
        SpecError: Two do, as where an embedding is used again for the output.
    """
    owners: dict[int, int] = {}
    for number, stage in enumerate(stages):
        for variable in stage.variables:
            owner = owners.setdefault(id(variable), number)
            if owner != number:
                users = (f"{_find_layer(stages[each].layers, variable)} (stage {each})" for each in (owner, number))
                raise _refuse_sharing(variable, *users)


def _find_layer(layers: Iterable[Any], variable: keras.Variable) -> str:
    own = (layer for layer in layers if any(each is variable for each in getattr(layer, "variables", ())))
    return str(next(own).name)


def _refuse_sharing(variable: keras.Variable, *users: str) -> SpecError:
    return refuse(
        f"must keep what layers share within a stage to be split. Received: {variable.path}, of {' and '.join(users)}.",
        "Say in train.pipeline.partition where to cut it, or give each layer its own.",
    )


@contextlib.contextmanager
def check_reads(own: Iterable[keras.Variable], everyone: Iterable[keras.Variable], stage: int) -> Iterator[None]:
    """Check of what runs in the meantime, for a stage, that it reads no trained variables but its own.

    A function that holds on to another layer's weights reads them without being known as one that shares them.

    Args:
        own: The variables of the stage.
        everyone: Those of the whole model that are trained.
        stage: Its number.

    Raises:
        SpecError: It reads others.
    """
    with tf.GradientTape() as tape:
        yield
    mine = {id(variable) for variable in own}
    others = {variable.value.ref(): variable for variable in everyone if id(variable) not in mine}
    for read in tape.watched_variables():
        if read.ref() in others:
            raise _refuse_sharing(others[read.ref()], "another stage", f"what stage {stage} computes")
