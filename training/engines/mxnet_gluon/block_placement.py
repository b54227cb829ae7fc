"""Which block of a model lies on which device, from a map of the spec or by balanced costs; nothing is moved here."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from mxnet import gluon

from training.engines.mxnet_gluon.fine_tuning import iter_blocks
from training.engines.mxnet_gluon.parameters import iter_parameters
from training.errors import SpecError, spec_error
from training.names import say_nearest
from training.plan.partition import LayerFacts, balance

_FIELD = "train.placement"

#: Name of a block to the number of its device.
Placement = dict[str, int]


def choose_placement(net: Any, wanted: Mapping[str, int], devices: int) -> Placement:
    """Return the placement of a block whose shapes are known.

    Args:
        net: The block.
        wanted: The map of the spec; empty to balance.
        devices: Number of devices.

    Raises:
        SpecError: The block is a symbol; the map names no block, names one inside another, or leaves parameters
            without a device (K33); there are fewer blocks than devices; or blocks of two devices share parameters.
    """
    if isinstance(net, gluon.SymbolBlock):
        message = "must not be `model_parallel` for a gluon.SymbolBlock, which is one graph and cannot be split."
        raise spec_error("train.strategy", message, "Take `data_parallel`, or make the block of several.")
    if wanted:
        check_names(net, wanted)
    placement = dict(wanted) if wanted else balance_blocks(net, devices)
    check_sharing(net, placement)
    return placement


def balance_blocks(net: Any, devices: int) -> Placement:
    """Return consecutive blocks for each device such that the dearest device has as few parameters as can be.

    Raises:
        SpecError: There are fewer blocks than devices.
    """
    units = list(_iter_units(net))
    if len(units) < devices:
        names = ", ".join(name for name, _ in units) or "none"
        message = f"must be at most the blocks that can be placed. Received: {devices} devices; blocks: {names}."
        raise spec_error("cluster.devices", message, "Use fewer devices.")
    layers = [
        LayerFacts(name=name, inputs=(number - 1,), cost=1.0 + count_parameters(block))
        for number, (name, block) in enumerate(units)
    ]
    sizes = balance(layers, range(1, len(layers)), devices)
    places = [device for device, size in enumerate(sizes) for _ in range(size)]
    return {name: device for (name, _), device in zip(units, places, strict=True)}


def check_names(net: Any, wanted: Mapping[str, int]) -> None:
    """Check a map against the blocks that there are.

    Raises:
        SpecError: As `choose_placement`.
    """
    blocks = dict(iter_blocks(net))
    for name in wanted:
        if name not in blocks:
            message = f"must name blocks of the model. Received: {name}; blocks: {', '.join(blocks)}."
            raise spec_error(_FIELD, message, say_nearest(name, blocks))
        outer = next((other for other in wanted if name.startswith(f"{other}.")), None)
        if outer:
            raise _refuse(f"must not place a block inside another one. Received: {name} and {outer}")
    unplaced = dict.fromkeys(
        owner
        for owner in (name.rpartition(".")[0] for name, _ in iter_parameters(net))
        if owner
        and not any(owner == one or owner.startswith(f"{one}.") for one in wanted)
        # What a block around placed ones owns itself lies on the first device, where the rows come in.
        and not any(one.startswith(f"{owner}.") for one in wanted)
    )
    if unplaced:
        raise _refuse(f"must place every block that has parameters. Received: none for {', '.join(unplaced)}")


def check_sharing(net: Any, placement: Placement) -> None:
    """Check that no parameter would have to be on two devices.

    Raises:
        SpecError: One would.
    """
    blocks = dict(iter_blocks(net))
    users: dict[int, str] = {}
    for name, device in placement.items():
        for parameter in blocks[name].collect_params().values():
            other = users.setdefault(id(parameter), name)
            if placement[other] != device:
                raise _refuse(f"must place blocks that share parameters on one device. Received: {other} and {name}")


def count_parameters(block: Any) -> int:
    """Return the numbers in the parameters of a block and those inside it."""
    return sum(math.prod(parameter.shape) for parameter in block.collect_params().values())


def _iter_units(net: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the blocks that are placed whole: containers are taken apart, what they hold is not."""
    for name, child in net._children.items():
        if isinstance(child, gluon.nn.Sequential | gluon.nn.HybridSequential):
            yield from _iter_units(child, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", child


def _refuse(message: str) -> SpecError:
    return spec_error(_FIELD, f"{message}.")
