"""What each rank is told by its environment, and what it needs beside itself: ports and services."""

from __future__ import annotations

from collections.abc import Sequence

from training.plan.framework import choose_environment
from training.plan.key_value_store import STORE_STRATEGIES, choose_store_ports, place_store, render_worker_env
from training.plan.members import choose_member_ports, place_chief, place_members, render_chief_env
from training.plan.placement import RankPlacement, ServicePlacement, port_name
from training.plan.tf_config import render_tf_config
from training.spec.parallelism import count_devices
from training.spec.pipeline import PipelineSpec

#: Name of the port of Horovod's rendezvous server, as `JobPlan.ports` lists it.
RENDEZVOUS_PORT = "rendezvous"
#: Strategies under which one process runs the program, and servers compute.
_LED_BY_A_CHIEF = ("parameter_server", "pipeline")


def name_stage(index: int) -> str:
    """Return what a stage of a pipeline is called in logs and errors."""
    return f"stage {index}"


def rank_stage(index: int) -> int:
    """Return the number of the process that is a stage: the chief is the first one.

    >>> rank_stage(0)
    1
    """
    return 1 + index


def choose_ranks(spec: PipelineSpec, workers: Sequence[RankPlacement]) -> tuple[RankPlacement, ...]:
    """Return the processes that the training ends with: those that train, or the one that has others train."""
    return (place_chief(workers),) if spec.train.strategy in _LED_BY_A_CHIEF else tuple(workers)


def render_rank_env(spec: PipelineSpec, workers: Sequence[RankPlacement], rank: int) -> dict[str, str]:
    """Return the variables that the framework of `rank` expects, with `{port:NAME}` where a port will be.

    Args:
        spec: What was asked for.
        workers: The processes that train.
        rank: One of `choose_ranks`.
    """
    env = {} if choose_environment(spec) == "mxnet" else {"TF_CPP_MIN_LOG_LEVEL": "2"}
    if spec.train.strategy == "multi_worker_mirrored":
        addresses = [f"{p.host}:{{port:{port_name(p.rank)}}}" for p in workers]
        env["TF_CONFIG"] = render_tf_config(addresses, rank, "worker")
    if spec.train.strategy in _LED_BY_A_CHIEF:
        env |= render_chief_env(workers, _count_servers(spec))
    if spec.train.engine == "horovod":
        env |= render_horovod_env(workers, rank)
    if spec.train.engine == "mxnet":
        env |= render_mxnet_env(spec, workers[rank])
    if spec.train.strategy in STORE_STRATEGIES:
        env |= render_worker_env(spec.train.strategy, workers, _count_servers(spec), rank)
    return env


def render_mxnet_env(spec: PipelineSpec, worker: RankPlacement) -> dict[str, str]:
    """Return what holds MXNet to the threads of `worker`: each device of the CPU has a pool of its own (K12)."""
    devices = count_devices(spec.train.strategy, spec.workers, spec.cluster.devices)
    return {"OMP_NUM_THREADS": str(max(1, worker.threads // devices))} if devices > 1 else {}


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


def choose_ports(spec: PipelineSpec, workers: Sequence[RankPlacement]) -> tuple[str, ...]:
    """Return the names of the ports that the gang needs."""
    if spec.train.strategy == "multi_worker_mirrored":
        return tuple(port_name(p.rank) for p in workers)
    if spec.train.strategy in _LED_BY_A_CHIEF:
        return choose_member_ports(workers, _count_servers(spec))
    if spec.train.strategy in STORE_STRATEGIES:
        return choose_store_ports(workers, _count_servers(spec))
    return (RENDEZVOUS_PORT,) if spec.train.engine == "horovod" else ()


def place_services(spec: PipelineSpec, workers: Sequence[RankPlacement]) -> tuple[ServicePlacement, ...]:
    """Return the processes that the ranks need beside themselves."""
    if spec.train.strategy == "parameter_server":
        return place_members(workers, _count_servers(spec))
    if spec.train.strategy in STORE_STRATEGIES:
        return place_store(spec.train.strategy, workers, _count_servers(spec))
    if spec.train.strategy == "pipeline":
        return place_members(workers, 0, name_stage)
    if spec.train.engine == "horovod":
        return (place_rendezvous(workers),)
    return ()


def place_rendezvous(placements: Sequence[RankPlacement]) -> ServicePlacement:
    """Return the server by which Horovod's ranks find one another."""
    sizes = {p.host: p.local_size for p in placements}
    hosts = ",".join(f"{host}:{size}" for host, size in sizes.items())
    address = placements[0].host
    module = ("training.engines.horovod_rendezvous", address, f"{{port:{RENDEZVOUS_PORT}}}", hosts)
    return ServicePlacement(rank=len(placements), role="rendezvous", host=address, module=module)


def _count_servers(spec: PipelineSpec) -> int:
    return 0 if spec.train.strategy == "pipeline" else spec.cluster.parameter_servers or 1


def _is_loopback(host: str) -> bool:
    return host == "localhost" or host.startswith("127.")
