"""Which network interface the ranks talk through, where the user's environment names one (K11).

Gangs of one machine talk through its loopback interface, whatever HOROVOD_GLOO_IFACE says. A name that no interface has
is refused all the same: a library that is told of it waits for peers, or ends with an error that does not name it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from training.errors import Problem
from training.plan.machine import MachineFacts
from training.spec.pipeline import PipelineSpec
from training.spec.wording import list_words

#: Variable to the strategies whose libraries read it.
#: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html, horovod/common/gloo/gloo_context.cc.
INTERFACE_VARIABLES: Final = {
    "HOROVOD_GLOO_IFACE": ("horovod",),
    "NCCL_SOCKET_IFNAME": ("mirrored", "multi_worker_mirrored", "horovod"),
}


def find_wrong_interfaces(spec: PipelineSpec, machine: MachineFacts) -> list[Problem]:
    """Return a problem for each variable that leaves a host of `machine` without an interface."""
    return [
        Problem(
            field=name,
            message=f"must name a network interface of {host.name}: {list_words(host.interfaces)}. Received: {text}.",
            remedy=f"Correct it in the environment that starts Ganger, or unset {name}.",
        )
        for name, text in machine.interface_variables.items()
        for host in machine.hosts
        if spec.train.strategy in INTERFACE_VARIABLES[name]
        and host.interfaces
        and not choose_interfaces(name, text, host.interfaces)
    ]


def choose_interfaces(variable: str, text: str, interfaces: Iterable[str]) -> list[str]:
    """Return those of `interfaces` that the value `text` of a variable admits.

    NCCL takes the beginnings of names, separated by commas; `=` asks for whole names, `^` for all others.

    >>> choose_interfaces("NCCL_SOCKET_IFNAME", "eth,ib", ["lo", "eth0", "eth1"])
    ['eth0', 'eth1']
    >>> choose_interfaces("NCCL_SOCKET_IFNAME", "^=lo", ["lo", "lo2"])
    ['lo2']
    >>> choose_interfaces("HOROVOD_GLOO_IFACE", "eth", ["lo", "eth0"])
    []
    """
    excluded = variable.startswith("NCCL") and text.startswith("^")
    text = text.removeprefix("^") if excluded else text
    whole = not variable.startswith("NCCL") or text.startswith("=")
    wanted = [part.strip() for part in text.removeprefix("=").split(",") if part.strip()]

    def is_named(interface: str) -> bool:
        return any(interface == name or (not whole and interface.startswith(name)) for name in wanted)

    return [interface for interface in interfaces if is_named(interface) is not excluded]
