"""What trainers remember, as named arrays, and back: momenta and the like by the names of their parameters.

The same whatever the strategy: a training may go on under another one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import mxnet as mx
import numpy as np
from numpy.typing import NDArray

from training.engines.mxnet_gluon.parameters import Arrays, require_same
from training.errors import spec_error

_COUNT = "updates"


def prepare_states(trainers: Sequence[Any]) -> None:
    """Make what the optimizers remember, which they would do at the first update.

    Raises:
        SpecError: An optimizer remembers something that is no array, and so cannot be saved (K38).
    """
    for trainer in trainers:
        for updater, copy in _iter_updaters(trainer):
            for index, parameter in iter_trained(trainer):
                if index not in updater.states:
                    weight = parameter.list_data()[copy]
                    updater.states[index] = trainer.optimizer.create_state_multi_precision(index, weight)
                    updater.states_synced[index] = True
                    dict(_flatten(updater.states[index], type(trainer.optimizer).__name__))


def read_trainers(trainers: Sequence[Any], names: Mapping[int, str]) -> Arrays:
    """Return what the trainers remember.

    Args:
        trainers: Each of some parameters; one that updates copies on several devices is asked for the first.
        names: Of parameters, by `id`.
    """
    arrays: Arrays = {}
    for trainer in trainers:
        updater, _ = next(_iter_updaters(trainer))
        counts = trainer.optimizer._all_index_update_counts.get(trainer._contexts[0].device_id, {})
        for index, parameter in iter_trained(trainer):
            name = f"trainer.{names[id(parameter)]}"
            arrays[f"{name}.{_COUNT}"] = np.array(counts.get(index, 0), dtype=np.int64)
            for place, array in _flatten(updater.states[index], name):
                arrays[place] = array.asnumpy()
    return arrays | _read_numbers(trainers)


def write_trainers(trainers: Sequence[Any], names: Mapping[int, str], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Set what the trainers remember from what `read_trainers` returned.

    Raises:
        SpecError: It is of other parameters or of another optimizer.
    """
    wanted = {name: array.shape for name, array in read_trainers(trainers, names).items()}
    require_same(wanted, {name: array.shape for name, array in arrays.items()})
    for trainer in trainers:
        optimizer = trainer.optimizer
        for index, parameter in iter_trained(trainer):
            name = f"trainer.{names[id(parameter)]}"
            count = int(arrays[f"{name}.{_COUNT}"])
            optimizer.num_update = max(optimizer.num_update, count)
            for (updater, _), context in zip(_iter_updaters(trainer), trainer._contexts, strict=True):
                optimizer._all_index_update_counts.setdefault(context.device_id, {})[index] = count
                for place, array in _flatten(updater.states[index], name):
                    array[:] = mx.nd.array(arrays[place], ctx=array.context, dtype=arrays[place].dtype)
        for name in list_numbers(optimizer):
            setattr(optimizer, name, float(arrays[f"optimizer.{name}"]))


def _iter_updaters(trainer: Any) -> Iterator[tuple[Any, int]]:
    for copy, updater in enumerate(trainer._updaters):
        yield updater, copy


def iter_trained(trainer: Any) -> Iterator[tuple[int, Any]]:
    """Yield number and parameter of those that a trainer updates."""
    for index, parameter in enumerate(trainer._params):
        if parameter.grad_req != "null":
            yield index, parameter


def _flatten(state: Any, name: str) -> Iterator[tuple[str, Any]]:
    if state is None:
        return
    if isinstance(state, mx.nd.NDArray):
        yield name, state
    elif isinstance(state, list | tuple):
        for number, part in enumerate(state):
            yield from _flatten(part, f"{name}.{number}")
    else:
        raise spec_error(
            "model.entrypoint",
            f"an optimizer must remember nothing but arrays, so that it can be saved. Received: a "
            f"{type(state).__name__} for {name}.",
        )


def _read_numbers(trainers: Sequence[Any]) -> Arrays:
    optimizer = trainers[0].optimizer
    return {f"optimizer.{name}": np.array(getattr(optimizer, name)) for name in list_numbers(optimizer)}


def list_numbers(optimizer: Any) -> list[str]:
    """Return the names of what an optimizer counts with beside its arrays, such as Nadam's `m_schedule`."""
    return sorted(name for name, value in vars(optimizer).items() if type(value) is float and name != "rescale_grad")
