"""The members of a gang that a chief leads: it has servers compute and keep variables, and the training ends with it.

Under `parameter_server` these are workers and parameter servers, under `pipeline` stages, which are workers to
TensorFlow. They serve until they are ended.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from training.plan.placement import RankPlacement, ServicePlacement, port_name
from training.plan.tf_config import Role, render_cluster_config

#: The module that a service runs; its role makes it serve.
_WORKER = ("training.worker",)
#: Has the chief told of a member that is gone, instead of waiting for it: the supervisor restarts gangs, not members.
_ENV = {"GRPC_FAIL_FAST": "use_caller", "TF_CPP_MIN_LOG_LEVEL": "2"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Member:
    role: Role
    index: int
    placement: RankPlacement


def place_chief(workers: Sequence[RankPlacement]) -> RankPlacement:
    """Return where the chief runs: on the first host, beside its workers; it waits while they compute."""
    return replace(workers[0], rank=0, role="chief")


def place_members(
    workers: Sequence[RankPlacement], servers: int, name_worker: Callable[[int], str] = lambda index: "worker"
) -> tuple[ServicePlacement, ...]:
    """Return the services of the chief: its workers, then `servers` parameter servers, spread over the hosts.

    Args:
        workers: Where the workers run.
        servers: Number of parameter servers.
        name_worker: What a worker of that index is called in logs.
    """
    members = _list_members(workers, servers)
    return tuple(
        ServicePlacement(
            rank=member.placement.rank,
            role=name_worker(member.index) if member.role == "worker" else member.role,
            host=member.placement.host,
            module=_WORKER,
            local_rank=member.placement.local_rank,
            threads=member.placement.threads,
            env=_render_env(members, member),
            ready_on="event",
        )
        for member in members[1:]
    )


def render_chief_env(workers: Sequence[RankPlacement], servers: int) -> dict[str, str]:
    """Return the variables that TensorFlow expects in the chief's environment."""
    members = _list_members(workers, servers)
    return _render_env(members, members[0])


def choose_member_ports(workers: Sequence[RankPlacement], servers: int) -> tuple[str, ...]:
    """Return the names of the ports of all members."""
    return tuple(port_name(member.placement.rank) for member in _list_members(workers, servers))


def _list_members(workers: Sequence[RankPlacement], servers: int) -> tuple[_Member, ...]:
    hosts = list(dict.fromkeys(worker.host for worker in workers))
    first = 1 + len(workers)
    chief = _Member(role="chief", index=0, placement=place_chief(workers))
    computing = (
        _Member(role="worker", index=index, placement=replace(worker, rank=1 + index))
        for index, worker in enumerate(workers)
    )
    keeping = (
        _Member(
            role="ps",
            index=index,
            placement=RankPlacement(
                rank=first + index, host=hosts[index % len(hosts)], local_rank=0, local_size=1, threads=1
            ),
        )
        for index in range(servers)
    )
    return (chief, *computing, *keeping)


def _render_env(members: Sequence[_Member], own: _Member) -> dict[str, str]:
    cluster: dict[Role, list[str]] = {}
    for member in members:
        address = f"{member.placement.host}:{{port:{port_name(member.placement.rank)}}}"
        cluster.setdefault(member.role, []).append(address)
    return {**_ENV, "TF_CONFIG": render_cluster_config(cluster, own.role, own.index)}
