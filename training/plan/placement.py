"""Where the processes of a gang run: ranks on hosts in blocks, services beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from training.errors import spec_error
from training.plan.machine import HostFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class RankPlacement:
    """Where a rank runs.

    Attributes:
        rank: Number in the gang, from 0.
        host: Host that it runs on.
        local_rank: Number among the ranks of its host, from 0.
        local_size: Ranks on its host.
        threads: Computation threads that it may use.
        role: What it is called in logs.
    """

    rank: int
    host: str
    local_rank: int
    local_size: int
    threads: int
    role: str = "worker"


def place_ranks(world_size: int, hosts: Sequence[HostFacts], threads: int | None = None) -> tuple[RankPlacement, ...]:
    """Place ranks on hosts in blocks: consecutive ranks share a host, earlier hosts take the remainder.

    Args:
        world_size: Number of ranks.
        hosts: Hosts in order.
        threads: Threads per rank; by default the cores of the host divided by its ranks, at least 1 (K12).

    >>> [(p.host, p.local_rank, p.threads) for p in place_ranks(3, [HostFacts(name="a", cores=4), HostFacts(name="b")])]
    [('a', 0, 2), ('a', 1, 2), ('b', 0, 1)]

    Raises:
        SpecError: There is no host.
    """
    if not hosts:
        raise spec_error("cluster.hosts", "at least one host is needed. Received: none.")
    share, remainder = divmod(world_size, len(hosts))
    placements: list[RankPlacement] = []
    for index, host in enumerate(hosts):
        size = share + (index < remainder)
        for local_rank in range(size):
            placements.append(
                RankPlacement(
                    rank=len(placements),
                    host=host.name,
                    local_rank=local_rank,
                    local_size=size,
                    threads=threads or max(1, host.cores // size),
                )
            )
    return tuple(placements)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServicePlacement:
    """A process that serves the ranks and is ended when they are done.

    Attributes:
        rank: Number of the process, after those of the ranks.
        role: What it is called in logs.
        host: Host that it runs on.
        module: Module that it runs, with arguments; `{port:NAME}` stands for a port.
        local_rank: Number among those of its role on its host, from 0.
        threads: Computation threads that it may use.
        env: What is added to its environment.
        ready_on: What tells that it serves: its `ready` event, or its first output.
    """

    rank: int
    role: str
    host: str
    module: tuple[str, ...]
    local_rank: int = 0
    threads: int = 1
    env: dict[str, str] = field(default_factory=dict)
    ready_on: Literal["event", "output"] = "output"


def port_name(rank: int) -> str:
    """Return the name of the port that a rank listens on, as `JobPlan.ports` lists it."""
    return f"rank-{rank}"
