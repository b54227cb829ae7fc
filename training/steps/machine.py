"""Reads the facts about this machine that plans are made from."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

from training import settings
from training.environments import read_environment
from training.plan.machine import EnvironmentFacts, HostFacts, MachineFacts
from training.plan.network import INTERFACE_VARIABLES

ENGINE_ENVIRONMENTS = ("tensorflow", "mxnet")


def read_machine() -> MachineFacts:
    """Return the facts about this machine and its environments; imports none of them.

    Raises:
        SpecError: `GANGER_SLOTS` holds no number of slots.
    """
    environments = {"control": EnvironmentFacts(name="control", python=sys.executable)}
    for name in ENGINE_ENVIRONMENTS:
        status = read_environment(name)
        environments[name] = EnvironmentFacts(name=name, python=str(status.python), problem=status.problem)
    host = HostFacts(
        cores=len(os.sched_getaffinity(0)),
        slots=settings.read_slots(),
        tpu=_has_tpu(),
        interfaces=tuple(name for _, name in socket.if_nameindex()),
    )
    variables = {name: os.environ[name] for name in INTERFACE_VARIABLES if os.environ.get(name)}
    return MachineFacts(hosts=(host,), environments=environments, interface_variables=variables)


def _has_tpu() -> bool:
    return "TPU_NAME" in os.environ or Path("/dev/accel0").exists()
