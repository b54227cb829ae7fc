"""Free ports of this machine, and a claim on them that lasts as long as the process that made it."""

from __future__ import annotations

import random
import socket
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from training.errors import LaunchError

_LOWEST = 10_000
_DEFAULT_EPHEMERAL = 32_768
_TRIES = 2_000


@dataclass(slots=True)
class PortClaim:
    """Ports that no other gang on this machine will choose until they are released."""

    ports: dict[str, int] = field(default_factory=dict)
    _claims: list[socket.socket] = field(default_factory=list)

    def release(self) -> None:
        """Let others have the ports. Safe to repeat."""
        while self._claims:
            self._claims.pop().close()


def claim_ports(names: Sequence[str]) -> PortClaim:
    """Choose a free port for each name; they rise in the order of the names.

    A rank binds its port seconds after it was chosen (it has a framework to import first): being free is not enough.

    - Ports are taken below the range that the kernel gives to outgoing connections, so that none of these takes one.
    - An abstract socket (unix(7)) named after the port is held until the release, so that no other gang chooses it.
      Such names live in the network namespace, as ports do, and vanish with their process.

    Raises:
        LaunchError: No free port was found.
    """
    claim = PortClaim()
    try:
        for name in names:
            claim.ports[name] = _claim_one(claim._claims)
        claim.ports.update(zip(claim.ports, sorted(claim.ports.values()), strict=True))
    except BaseException:
        claim.release()
        raise
    return claim


def _claim_one(claims: list[socket.socket]) -> int:
    highest = max(_read_ephemeral_start(), _LOWEST + 1_000)
    for _ in range(_TRIES):
        port = random.randrange(_LOWEST, highest)
        holder = _hold_name(port)
        if holder is None:
            continue
        if _is_free(port):
            claims.append(holder)
            return port
        holder.close()
    raise LaunchError(f"a free port between {_LOWEST} and {highest} is needed. Received: none in {_TRIES} tries.")


def _hold_name(port: int) -> socket.socket | None:
    holder = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        holder.bind(f"\0ganger-port-{port}")
    except OSError:
        holder.close()
        return None
    return holder


def _is_free(port: int) -> bool:
    """Whether the port can be bound on all addresses, which is what gRPC and Gloo do.

    Without SO_REUSEADDR: a port on which connections of an earlier gang still wait for their end (TIME_WAIT, a minute
    on Linux) can be bound by servers that set it only.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        try:
            probe.bind(("", port))
            probe.listen(1)
        except OSError:
            return False
    return True


def _read_ephemeral_start() -> int:
    try:
        return int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except OSError:
        return _DEFAULT_EPHEMERAL
