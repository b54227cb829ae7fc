"""Fine-tuning: parameters from another model by their names, and blocks that are not trained; both with a report."""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import mxnet as mx
from mxnet import gluon

from training.checkpoints.tensors import read_tensors
from training.engines.load_report import LoadReport
from training.engines.mxnet_gluon.parameters import Arrays, iter_parameters
from training.engines.mxnet_gluon.saved_files import find_weights
from training.errors import spec_error
from training.names import say_nearest


def read_weights(path: Path) -> Arrays:
    """Return the parameters in a folder that Ganger saved, or in a file of `save_parameters` or of safetensors.

    Raises:
        SpecError: It holds none that can be read.
    """
    try:
        if path.is_dir():
            path = find_weights(path)
        if path.suffix == ".safetensors":
            return read_tensors(path)
        loaded = mx.nd.load(str(path))
        return {name.removeprefix("arg:").removeprefix("aux:"): array.asnumpy() for name, array in loaded.items()}
    except Exception as error:
        message = f"must hold parameters of a Gluon block. Received: {path}: {type(error).__name__}: {error}"
        raise spec_error("model.initialize_from", message) from error


def copy_weights(source: Arrays, net: Any) -> LoadReport:
    """Give the parameters of `net` the values of those in `source` with the same name and shape.

    Raises:
        SpecError: There is none.
    """
    wanted = dict(iter_parameters(net))
    common = [name for name in wanted if name in source]
    loaded = [name for name in common if source[name].shape == tuple(wanted[name].shape)]
    if not loaded:
        have = ", ".join(f"{name} {list(array.shape)}" for name, array in source.items()) or "nothing"
        own = ", ".join(f"{name} {list(parameter.shape)}" for name, parameter in wanted.items())
        raise spec_error(
            "model.initialize_from",
            f"must have at least one parameter with the name and shape of one of the model's. Received: {have}; "
            f"the model has {own}.",
            "Name the blocks alike.",
        )
    for name in loaded:
        wanted[name].set_data(mx.nd.array(source[name], dtype=wanted[name].dtype))
    return LoadReport(
        loaded=tuple(loaded),
        reshaped=tuple(name for name in common if name not in loaded),
        absent=tuple(name for name in wanted if name not in source),
        unused=tuple(name for name in source if name not in wanted),
    )


def freeze_blocks(net: Any, patterns: Sequence[str]) -> tuple[str, ...]:
    """Set the blocks that match a pattern (as of a shell: `features*`) to be not trained; return their names.

    Names are as in those of parameters: `features` holds `features.0`. Batch normalization inside them goes by the
    averages that it has, and leaves them as they are.

    Raises:
        SpecError: A pattern matches no block.
    """
    blocks = dict(iter_blocks(net))
    frozen: list[str] = []
    for pattern in patterns:
        names = [name for name in blocks if fnmatch.fnmatchcase(name, pattern)]
        if not names:
            message = f"must match the name of a block. Received: {pattern}; blocks: {', '.join(blocks)}."
            raise spec_error("model.freeze", message, say_nearest(pattern, blocks))
        frozen += [name for name in names if name not in frozen]
    for name in frozen:
        for parameter in blocks[name].collect_params().values():
            parameter.grad_req = "null"
        blocks[name].apply(_keep_averages)
    return tuple(frozen)


def _keep_averages(block: Any) -> None:
    if isinstance(block, gluon.nn.BatchNorm):
        block._kwargs["use_global_stats"] = True  # there is no public way after it was made


def describe_frozen(net: Any, patterns: Sequence[str]) -> str:
    """Return which blocks are not trained, in words, without those inside them; empty when `patterns` is."""
    matching = [name for name, _ in iter_blocks(net) if any(fnmatch.fnmatchcase(name, one) for one in patterns)]
    outer = [name for name in matching if not any(name.startswith(f"{other}.") for other in matching)]
    parameters = [parameter for _, parameter in iter_parameters(net)]
    trained = sum(math.prod(parameter.shape) for parameter in parameters if parameter.grad_req != "null")
    every = sum(math.prod(parameter.shape) for parameter in parameters)
    return f"{', '.join(outer)}; {trained} of {every} parameters are trained" if outer else ""


def iter_blocks(net: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the blocks inside `net` with their names, outer ones first."""
    for name, child in net._children.items():
        yield f"{prefix}{name}", child
        yield from iter_blocks(child, f"{prefix}{name}.")
