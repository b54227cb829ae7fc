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


#: Name of the port of Horovod's rendezvous server, as `JobPlan.ports` lists it.
RENDEZVOUS_PORT = "rendezvous"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServicePlacement:
    """A process that serves the ranks and is ended when they are done.

    Attributes:
        rank: Number of the process, after those of the ranks.
        role: What it is called in logs.
        host: Host that it runs on.
        module: Module that it runs, with arguments; `{port:NAME}` stands for a port.
    """

    rank: int
    role: str
    host: str
    module: tuple[str, ...]


def port_name(rank: int) -> str:
    """Return the name of the port that a rank listens on, as `JobPlan.ports` lists it."""
    return f"rank-{rank}"


def render_rank_env(spec: PipelineSpec, placements: Sequence[RankPlacement], rank: int) -> dict[str, str]:
    """Return the variables that the framework of `rank` expects, with `{port:NAME}` where a port will be."""
    env = {} if spec.train.engine == "mxnet" else {"TF_CPP_MIN_LOG_LEVEL": "2"}
    if spec.train.strategy == "multi_worker_mirrored":
        workers = [f"{p.host}:{{port:{port_name(p.rank)}}}" for p in placements]
        env["TF_CONFIG"] = render_tf_config(workers, rank, "worker")
    if spec.train.engine == "horovod":
        env |= render_horovod_env(placements, rank)
    return env


def render_horovod_env(placements: Sequence[RankPlacement], rank: int) -> dict[str, str]:
    """Return what `horovodrun` would tell a rank (horovod/runner/gloo_run.py, `create_slot_env_vars`)."""
    own = placements[rank]
    beside = [p for p in placements if p.local_rank == own.local_rank]  # one a host: Horovod calls them a cross group
    interface = {"HOROVOD_GLOO_IFACE": "lo"} if all(_is_loopback(p.host) for p in placements) else {}
    return interface | {
        "HOROVOD_CONTROLLER": "gloo",
        "HOROVOD_CPU_OPERATIONS": "gloo",
        "HOROVOD_GLOO_RENDEZVOUS_ADDR": placements[0].host,
        "HOROVOD_GLOO_RENDEZVOUS_PORT": f"{{port:{RENDEZVOUS_PORT}}}",
        "HOROVOD_HOSTNAME": own.host,
        "HOROVOD_RANK": str(rank),
        "HOROVOD_SIZE": str(len(placements)),
        "HOROVOD_LOCAL_RANK": str(own.local_rank),
        "HOROVOD_LOCAL_SIZE": str(own.local_size),
        "HOROVOD_CROSS_RANK": str(beside.index(own)),
        "HOROVOD_CROSS_SIZE": str(len(beside)),
    }


def choose_ports(spec: PipelineSpec, placements: Sequence[RankPlacement]) -> tuple[str, ...]:
    """Return the names of the ports that the gang needs."""
    if spec.train.strategy == "multi_worker_mirrored":
        return tuple(port_name(p.rank) for p in placements)
    return (RENDEZVOUS_PORT,) if spec.train.engine == "horovod" else ()


def place_services(spec: PipelineSpec, placements: Sequence[RankPlacement]) -> tuple[ServicePlacement, ...]:
    """Return the processes that the ranks need beside themselves."""
    if spec.train.engine != "horovod":
        return ()
    sizes = {p.host: p.local_size for p in placements}
    hosts = ",".join(f"{host}:{size}" for host, size in sizes.items())
    address = placements[0].host
    module = ("training.engines.horovod_rendezvous", address, f"{{port:{RENDEZVOUS_PORT}}}", hosts)
    return (ServicePlacement(rank=len(placements), role="rendezvous", host=address, module=module),)


def _is_loopback(host: str) -> bool:
    return host == "localhost" or host.startswith("127.")
