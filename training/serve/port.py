"""Chooses ports of this machine's loopback address."""

from __future__ import annotations

import contextlib
import socket

import psutil

from training.errors import PreflightError

LOOPBACK = "127.0.0.1"
_TRIED = 100


def is_free(port: int) -> bool:
    """Return whether a server could listen on `port` now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        # As servers do: a port that a stopped server left in TIME_WAIT is free, one that is listened on is not.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((LOOPBACK, port))
        except OSError:
            return False
        return True


def find_holder(port: int) -> psutil.Process | None:
    """Return the process that listens on `port`, where this user may see it."""
    with contextlib.suppress(psutil.AccessDenied):
        for connection in psutil.net_connections("tcp"):
            # `laddr` is an empty tuple for sockets that are bound to nothing.
            if connection.status == psutil.CONN_LISTEN and tuple(connection.laddr)[1:] == (port,) and connection.pid:
                with contextlib.suppress(psutil.NoSuchProcess):
                    return psutil.Process(connection.pid)
    return None


def choose_port(service: str, default: int, wanted: int | None = None) -> int:
    """Return the port for `service`: the wanted one, or else the first free one from `default` on.

    Raises:
        PreflightError: The wanted port, or every one from the default on, is taken; says by whom if that can be seen.
    """
    if wanted is not None:
        if is_free(wanted):
            return wanted
        raise PreflightError(describe_busy(service, wanted))
    for port in range(default, default + _TRIED):
        if is_free(port):
            return port
    raise PreflightError(f"{service} found no free port from {default} to {default + _TRIED - 1}. Give it one.")


def describe_busy(service: str, port: int) -> str:
    """Return the sentence about a port that is taken: host, port, service and, where it can be seen, the holder."""
    holder = find_holder(port)
    by = f"by pid {holder.pid} ({holder.name()})" if holder else "by a process that this user cannot see"
    return f"{service} needs port {port} of {LOOPBACK}, which is held {by}. Stop it or choose another port."
