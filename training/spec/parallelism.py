"""What a strategy makes of the workers that were asked for: processes, and replicas in each."""

from __future__ import annotations

from typing import Final

#: Strategies whose workers are processes of their own. All others run one process.
PROCESS_STRATEGIES: Final = (
    "multi_worker_mirrored",
    "parameter_server",
    "pipeline",
    "horovod",
    "dist_sync",
    "dist_async",
)
#: Strategies whose workers are devices of one process.
DEVICE_STRATEGIES: Final = ("mirrored", "central_storage", "data_parallel", "model_parallel")
#: Strategies whose replicas each take an equal share of every global batch.
EQUAL_SHARES: Final = (
    "multi_worker_mirrored",
    "horovod",
    "dist_sync",
    "dist_async",
    "parameter_server",
    "mirrored",
    "central_storage",
    "data_parallel",
)

#: Strategies with processes that keep what the workers share, `cluster.parameter_servers` of them.
SERVER_STRATEGIES: Final = ("parameter_server", "dist_sync", "dist_async")

#: Strategies whose gang can be started again with fewer ranks and go on (ADR 3: the rows of a step do not change).
ELASTIC_STRATEGIES: Final = ("multi_worker_mirrored", "horovod", "dist_sync")


def count_processes(strategy: str, workers: int) -> int:
    """Return the number of processes that train.

    >>> count_processes("horovod", 3), count_processes("mirrored", 3)
    (3, 1)
    """
    return workers if strategy in PROCESS_STRATEGIES else 1


def count_devices(strategy: str, workers: int, devices: int | None) -> int:
    """Return the number of devices that each process uses: those asked for, else as many as workers.

    >>> count_devices("mirrored", 2, None), count_devices("mirrored", 2, 4), count_devices("horovod", 2, None)
    (2, 4, 1)
    """
    return (devices or workers) if strategy in DEVICE_STRATEGIES else 1


def count_replicas(strategy: str, workers: int, devices: int | None = None) -> int:
    """Return into how many equal shares a global batch is cut."""
    if strategy not in EQUAL_SHARES:
        return 1
    return count_processes(strategy, workers) * count_devices(strategy, workers, devices)


def list_smaller(workers: int, min_workers: int | None, batch_size: int | None) -> list[int]:
    """Return the numbers of workers below `workers` that a gang may go on with, largest first.

    Without a batch size, which a script keeps to itself, all of them.

    >>> list_smaller(4, 1, 32)
    [2, 1]
    """
    sizes = range(workers - 1, (min_workers or workers) - 1, -1)
    return [size for size in sizes if batch_size is None or batch_size % size == 0]
