"""What trainers remember, as named arrays, and back: momenta and the like by the names of their parameters.

The same whatever the strategy: a training may go on under another one.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import mxnet as mx
import numpy as np
from numpy.typing import NDArray

from training.engines.mxnet_gluon.optimizer_memory import (
    check_rest,
    check_state,
    describe_rest,
    iter_leaves,
    read_leaf,
    read_numbers,
    replace_leaves,
    write_leaf,
    write_numbers,
)
from training.engines.mxnet_gluon.parameters import Arrays, require_same
from training.errors import SpecError, spec_error

_COUNT = "updates"
#: Optimizers to what must not change of them.
_BEGUN: WeakKeyDictionary[Any, dict[str, str]] = WeakKeyDictionary()


def check_optimizer(optimizer: Any, *, copies: int = 1, optimizers: int = 1) -> None:
    """Check that one of MXNet's optimizers can be trained with as it is to be.

    Args:
        optimizer: Any.
        copies: Of the weights, each updated by itself.
        optimizers: Of some of the parameters each.

    Raises:
        SpecError: It would not train the same weights as on one device, or be the same when resumed.
    """
    name = type(optimizer).__name__
    if isinstance(optimizer, mx.optimizer.LBSGD) and optimizer.batch_scale > 1:
        raise spec_error(
            "model.entrypoint",
            f"{name} must have a batch_scale of 1: MXNet loses gradients that it gathers over batches. "
            f"Received: {optimizer.batch_scale}.",
            "Make train.batch_size larger.",
        )
    if isinstance(optimizer, mx.optimizer.SGLD) and copies > 1:
        raise _refuse_strategy(f"{name} draws numbers for each copy of the weights", f"{copies} copies")
    if isinstance(optimizer, mx.optimizer.Nadam | mx.optimizer.LARS) and optimizers > 1:
        raise _refuse_strategy(f"{name} counts the updates of all parameters in one number", f"{optimizers} optimizers")


def prepare_states(trainers: Sequence[Any]) -> None:
    """Make what the optimizers remember, which they would do at the first update.

    The devices of a trainer get an optimizer each. MXNet has them share one, so that each device would find the numbers
    of Nadam as another one's update left them, and their weights would drift apart.

    Raises:
        SpecError: An optimizer remembers something that is no array or number, and so cannot be saved (K38).
    """
    for trainer in trainers:
        for copied, updater in enumerate(trainer._updaters):
            if copied:
                updater.optimizer = copy.deepcopy(trainer.optimizer)
                updater.optimizer.param_dict = trainer.optimizer.param_dict
            for index, parameter in iter_trained(trainer):
                weight = parameter.list_data()[copied]
                state = updater.optimizer.create_state_multi_precision(index, weight)
                check_state(updater.optimizer, state)
                updater.states[index], updater.states_synced[index] = state, True
        _BEGUN[trainer.optimizer] = describe_rest(trainer.optimizer, trainer._updaters[0].states)


def set_scale(trainer: Any, global_batch_size: int) -> None:
    """Have the optimizers of all devices divide gradients by the rows of the batch; the trainer tells the first one."""
    for updater in trainer._updaters:
        updater.optimizer.rescale_grad = trainer._scale / global_batch_size


def read_trainers(trainers: Sequence[Any], names: Mapping[int, str]) -> Arrays:
    """Return what the trainers remember.

    Args:
        trainers: Each of some parameters; one that updates copies on several devices is asked for the first.
        names: Of parameters, by `id`.

    Raises:
        SpecError: An optimizer has changed something that cannot be saved.
    """
    arrays: Arrays = {}
    for trainer in trainers:
        updater = trainer._updaters[0]
        check_rest(trainer.optimizer, updater.states, _BEGUN[trainer.optimizer])
        counts = trainer.optimizer._all_index_update_counts.get(trainer._contexts[0].device_id, {})
        for index, parameter in iter_trained(trainer):
            name = f"trainer.{names[id(parameter)]}"
            arrays[f"{name}.{_COUNT}"] = np.array(counts.get(index, 0), dtype=np.int64)
            for place, leaf in iter_leaves(updater.states[index], name):
                arrays[place] = read_leaf(leaf)
    return arrays | _read_own_numbers(trainers)


def write_trainers(trainers: Sequence[Any], names: Mapping[int, str], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Set what the trainers remember from what `read_trainers` returned.

    Raises:
        SpecError: It is of other parameters or of another optimizer.
    """
    wanted = {name: array.shape for name, array in read_trainers(trainers, names).items()}
    require_same(wanted, {name: array.shape for name, array in arrays.items()})
    numbers = {
        name.removeprefix("optimizer."): array for name, array in arrays.items() if name.startswith("optimizer.")
    }
    for trainer in trainers:
        for updater, context in zip(trainer._updaters, trainer._contexts, strict=True):
            counts = updater.optimizer._all_index_update_counts.setdefault(context.device_id, {})
            for index, parameter in iter_trained(trainer):
                name = f"trainer.{names[id(parameter)]}"
                counts[index] = int(arrays[f"{name}.{_COUNT}"])
                updater.optimizer.num_update = max(updater.optimizer.num_update, counts[index])
                state = updater.states[index]
                leaves = [write_leaf(leaf, arrays[place]) for place, leaf in iter_leaves(state, name)]
                updater.states[index] = replace_leaves(state, iter(leaves))
            write_numbers(updater.optimizer, numbers)


def iter_trained(trainer: Any) -> Iterator[tuple[int, Any]]:
    """Yield number and parameter of those that a trainer updates."""
    for index, parameter in enumerate(trainer._params):
        if parameter.grad_req != "null":
            yield index, parameter


def _read_own_numbers(trainers: Sequence[Any]) -> Arrays:
    """Return the numbers of the optimizers, of which trainers of some parameters each must have the same.

    Raises:
        SpecError: They differ.
    """
    first, *others = (read_numbers(trainer.optimizer) for trainer in trainers)
    for other in others:
        for name, array in first.items():
            if not np.array_equal(array, other[name], equal_nan=True):
                optimizer = type(trainers[0].optimizer).__name__
                raise _refuse_strategy(
                    f"{optimizer} counts the updates of all parameters in {name}", f"{len(trainers)} optimizers"
                )
    return {f"optimizer.{name}": array for name, array in first.items()}


def _refuse_strategy(why: str, received: str) -> SpecError:
    return spec_error(
        "train.strategy",
        f"must leave all weights to one optimizer, since {why}. Received: {received}.",
        "Train on one device, or with another optimizer.",
    )
