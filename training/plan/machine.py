"""Facts about the machines and environments that a plan is made for.

Plain values: `training.steps.machine` reads them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFacts:
    """A host that can run ranks.

    Attributes:
        name: Name or address that the other hosts reach it by.
        cores: Cores that processes may use.
        slots: Places for ranks: how many may run on it at once, of all gangs together.
        tpu: Whether a TPU is named or attached.
        interfaces: Names of its network interfaces; empty when they are not known.
    """

    name: str = "127.0.0.1"
    cores: int = 1
    slots: int = 1
    tpu: bool = False
    interfaces: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentFacts:
    """A Python environment.

    Attributes:
        name: `control`, `tensorflow` or `mxnet`.
        python: Its interpreter.
        problem: Why it cannot be used, with what to do, in one sentence; empty when it can.
    """

    name: str
    python: str
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineFacts:
    """Everything that a plan needs to know of where it will run.

    Attributes:
        hosts: In the order in which ranks are placed on them.
        environments: By name.
        interface_variables: Variables of the user's environment that name network interfaces, with their values.
    """

    hosts: tuple[HostFacts, ...] = (HostFacts(),)
    environments: Mapping[str, EnvironmentFacts] = field(default_factory=dict)
    interface_variables: Mapping[str, str] = field(default_factory=dict)
