"""What must be set before MXNet does anything, and so before the user's code is imported; seeds and devices."""

from __future__ import annotations

import os
import random
from typing import Any

import mxnet as mx
import numpy as np

from training.errors import PreflightError

_SEEDS = 2**31 - 1


#: MXNet reads them once, when it first draws or trains. Operators of all contexts of the CPU take turns with the same
#: few (4) scratch arrays, and what is done in bulk takes many of them at once, so that contexts would wait for one
#: another. GPUs have their own. https://mxnet.apache.org/versions/1.9.1/api/faq/env_var
_APART = {"MXNET_CPU_TEMP_COPY": "24", "MXNET_EXEC_BULK_EXEC_MAX_NODE_TRAIN": "1"}


def prepare_contexts(count: int) -> None:
    """Let `count` contexts of the CPU work at the same time; to be called before anything is computed."""
    if count > 1 and not mx.context.num_gpus():
        os.environ.update({name: value for name, value in _APART.items() if name not in os.environ})


def prepare_seeds(seed: int) -> None:
    """Set the seeds of everything that draws numbers in this process.

    Threads are held by its environment, which MXNet reads when it is imported.
    """
    random.seed(seed)
    np.random.seed(seed % _SEEDS)
    mx.random.seed(seed % _SEEDS)


def seed_step(seed: int, step: int, rank: int) -> None:
    """Make what a step draws, such as the masks of dropout, depend on nothing but the arguments.

    So a training that goes on from a checkpoint draws what an undisturbed one does. Devices draw differently.
    """
    mx.random.seed(int(np.random.SeedSequence((seed, step, rank)).generate_state(1)[0]) % _SEEDS)


def choose_contexts(count: int) -> tuple[Any, ...]:
    """Return `count` devices: GPUs where there are any, else parts of the CPU, each with a queue of its own.

    Raises:
        PreflightError: There are fewer GPUs.
    """
    gpus = mx.context.num_gpus()
    if gpus:
        if gpus < count:
            raise PreflightError(
                f"cluster.devices must be at most the GPUs that a process sees. Received: {count} of {gpus}."
            )
        return tuple(mx.gpu(index) for index in range(count))
    if count > 1:
        print(f"no GPU here: the devices share the CPU as {count} contexts", flush=True)
    return tuple(mx.cpu(index) for index in range(count))


def choose_own_context(local_rank: int) -> Any:
    """Return the device of one rank among those of its host: a GPU, shared where there are fewer, else the CPU."""
    gpus = mx.context.num_gpus()
    return mx.gpu(local_rank % gpus) if gpus else mx.cpu(0)


def name_contexts(contexts: tuple[Any, ...]) -> tuple[str, ...]:
    """Return the names of devices, such as `CPU:0`."""
    return tuple(f"{context.device_type.upper()}:{context.device_id}" for context in contexts)


def list_versions() -> dict[str, str]:
    """Return the versions that decide about results."""
    return {"mxnet": mx.__version__, "numpy": np.__version__}
