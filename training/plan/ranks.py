"""Rank arithmetic: which rank runs on which host, with how many threads and which environment variables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from training.errors import spec_error
from training.plan.machine import HostFacts
from training.plan.tf_config import render_tf_config
from training.spec.pipeline import PipelineSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class RankPlacement:
    """Where a rank runs.

    Attributes:
        rank: Number in the gang, from 0.
        host: Host that it runs on.
        local_rank: Number among the ranks of its host, from 0.
        local_size: Ranks on its host.
        threads: Computation threads that it may use.
    """

    rank: int
    host: str
    local_rank: int
    local_size: int
    threads: int


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


def port_name(rank: int) -> str:
    """Return the name of the port that a rank listens on, as `JobPlan.ports` lists it."""
    return f"rank-{rank}"


def render_rank_env(spec: PipelineSpec, placements: Sequence[RankPlacement], rank: int) -> dict[str, str]:
    """Return the variables that the framework of `rank` expects, with `{port:NAME}` where a port will be."""
    if spec.train.engine != "tensorflow":
        return {}
    env = {"TF_CPP_MIN_LOG_LEVEL": "2"}
    if spec.train.strategy == "multi_worker_mirrored":
        workers = [f"{p.host}:{{port:{port_name(p.rank)}}}" for p in placements]
        env["TF_CONFIG"] = render_tf_config(workers, rank, "worker")
    return env


def choose_ports(spec: PipelineSpec, placements: Sequence[RankPlacement]) -> tuple[str, ...]:
    """Return the names of the ports that the gang needs."""
    if spec.train.strategy == "multi_worker_mirrored":
        return tuple(port_name(p.rank) for p in placements)
    return ()
