"""The parameters of a block by names that tell where they are in it: `features.0.weight`.

Gluon's own names count the layers that the process has made; these are the same in every process.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import mxnet as mx
from numpy.typing import NDArray

from training.errors import spec_error

Arrays = dict[str, NDArray[Any]]


def iter_parameters(net: Any) -> Iterator[tuple[str, Any]]:
    """Yield names and parameters in the order of the blocks; one that two blocks share comes once."""
    seen: set[int] = set()
    for name, parameter in net._collect_params_with_prefix().items():
        if id(parameter) not in seen:
            seen.add(id(parameter))
            yield name, parameter


def read_parameters(net: Any) -> Arrays:
    """Return the values of all parameters; where devices have copies, those of the first."""
    return {name: parameter.list_data()[0].asnumpy() for name, parameter in iter_parameters(net)}


def write_parameters(net: Any, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Set all parameters, on every device.

    Raises:
        SpecError: The block has other parameters or other shapes.
    """
    wanted = {name: tuple(parameter.shape) for name, parameter in iter_parameters(net)}
    require_same(wanted, {name: array.shape for name, array in arrays.items()})
    for name, parameter in iter_parameters(net):
        parameter.set_data(mx.nd.array(arrays[name], dtype=arrays[name].dtype))


def require_same(wanted: Mapping[str, tuple[int, ...]], have: Mapping[str, tuple[int, ...]]) -> None:
    """Check names and shapes of a checkpoint against those of a model.

    Raises:
        SpecError: They differ.
    """
    if wanted == have:
        return
    differing = sorted(name for name in wanted.keys() | have.keys() if wanted.get(name) != have.get(name))
    name = differing[0]
    raise spec_error(
        "model",
        "must have the values of the checkpoint to resume from it. "
        f"Received: {len(differing)} that differ, first {name}: "
        f"{have.get(name, 'absent')} in the checkpoint, {wanted.get(name, 'absent')} in the model.",
        "Undo the change of the model, or start a new run.",
    )


def name_parameters(net: Any) -> dict[int, str]:
    """Return the names of parameters by their `id`."""
    return {id(parameter): name for name, parameter in iter_parameters(net)}
