"""The members of a gang whose workers meet in MXNet's key-value store: workers, a scheduler, and servers.

https://mxnet.apache.org/versions/1.9.1/api/faq/distributed_training. The scheduler has the members find one another;
servers add gradients up, or keep the weights. Neither ends by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from training.plan.placement import RankPlacement, ServicePlacement, port_name

STORE_STRATEGIES: Final = ("dist_sync", "dist_async")
SCHEDULER_PORT: Final = "scheduler"

#: The module that a service runs; its role makes it serve. It sets DMLC_ROLE itself: with it in its environment, MXNet
#: would serve from within `import mxnet`, where no signal reaches it.
_WORKER = ("training.worker",)
#: An optimizer that looks at a whole array must get it whole, so that no array is cut over several servers.
_WHOLE_ARRAYS = {"MXNET_KVSTORE_BIGARRAY_BOUND": str(2**31 - 1)}


def place_store(strategy: str, workers: Sequence[RankPlacement], servers: int) -> tuple[ServicePlacement, ...]:
    """Return the scheduler, on the first host, and `servers` servers, spread over the hosts."""
    hosts = list(dict.fromkeys(worker.host for worker in workers))
    roles = [("scheduler", hosts[0]), *(("server", hosts[index % len(hosts)]) for index in range(servers))]
    return tuple(
        ServicePlacement(
            rank=rank,
            role=role,
            host=host,
            module=_WORKER,
            env=_render_env(strategy, workers, servers, rank, host),
            ready_on="event",
        )
        for rank, (role, host) in enumerate(roles, start=len(workers))
    )


def render_worker_env(strategy: str, workers: Sequence[RankPlacement], servers: int, rank: int) -> dict[str, str]:
    """Return the variables by which MXNet's key-value store finds its members, for a worker."""
    return _render_env(strategy, workers, servers, rank, workers[rank].host) | {"DMLC_ROLE": "worker"}


def choose_store_ports(workers: Sequence[RankPlacement], servers: int) -> tuple[str, ...]:
    """Return the names of the ports of all members."""
    first = len(workers) + 1
    members = [*range(len(workers)), *range(first, first + servers)]
    return (SCHEDULER_PORT, *(port_name(rank) for rank in members))


def _render_env(strategy: str, workers: Sequence[RankPlacement], servers: int, rank: int, host: str) -> dict[str, str]:
    own_port = {} if rank == len(workers) else {"PORT": f"{{port:{port_name(rank)}}}"}
    whole = _WHOLE_ARRAYS if strategy == "dist_async" else {}
    return {
        **whole,
        # The store numbers the workers of a host by their ports, which rise with the ranks.
        **own_port,
        "DMLC_NODE_HOST": host,
        "DMLC_NUM_SERVER": str(servers),
        "DMLC_NUM_WORKER": str(len(workers)),
        "DMLC_PS_ROOT_PORT": f"{{port:{SCHEDULER_PORT}}}",
        "DMLC_PS_ROOT_URI": workers[0].host,
    }
