"""Waits until the services answer, or says why they never will."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

from training.errors import InfrastructureError, LaunchError
from training.serve.record import ServiceRef, Services

POLL_S = 0.25
#: Parts of Airflow that must be well before a DAG run can be triggered and goes on by itself.
NEEDED = ("metadatabase", "scheduler", "dag_processor")
_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def fetch(url: str, timeout_s: float = 5.0) -> bytes | None:
    """Return what `url` answers; None while it does not. No proxy is asked."""
    try:
        with _opener.open(url, timeout=timeout_s) as answer:
            return bytes(answer.read())
    except OSError:
        return None


def is_airflow_well(answer: bytes | None) -> bool:
    """Return whether the answer of `/api/v2/monitor/health` says that all needed parts are healthy."""
    if answer is None:
        return False
    health = json.loads(answer)
    return all(health.get(part, {}).get("status") == "healthy" for part in NEEDED)


def poll_health(services: Services) -> dict[str, bool]:
    """Return for Airflow and for MLflow whether it answers and is well."""
    return {
        "Airflow": is_airflow_well(fetch(f"{services.airflow_url}/api/v2/monitor/health")),
        "MLflow": fetch(f"{services.mlflow_url}/health") is not None,
    }


def wait_until_well(
    services: Services, *, timeout_s: float, log: Callable[[str], None], clock: Callable[[], float] = time.monotonic
) -> None:
    """Return when Airflow and MLflow are well, with a line for each as it gets there.

    Raises:
        LaunchError: A process died; holds the last lines of its log.
        InfrastructureError: They were not well after `timeout_s` seconds.
    """
    began = clock()
    said: set[str] = set()
    while True:
        dead = services.find_dead()
        if dead is not None:
            raise LaunchError(f"{dead.name} died while it started. Its log ends with:\n{read_tail(Path(dead.log))}")
        health = poll_health(services)
        for name in [name for name, well in health.items() if well and name not in said]:
            said.add(name)
            log(f"{name} answers after {clock() - began:.0f} s")
        if all(health.values()):
            return
        if clock() - began > timeout_s:
            missing = " and ".join(name for name, well in health.items() if not well)
            logs = ", ".join(process.log for process in services.processes if _belongs(process, health))
            raise InfrastructureError(f"{missing} must answer within {timeout_s:.0f} s and did not. See {logs}")
        time.sleep(POLL_S)


def _belongs(process: ServiceRef, health: dict[str, bool]) -> bool:
    return any(not well and process.name.startswith(name.lower()) for name, well in health.items())


def read_tail(path: Path, lines: int = 20) -> str:
    """Return the last lines of a log file."""
    try:
        with path.open("rb") as stream:
            stream.seek(max(0, path.stat().st_size - 16384))
            return "\n".join(stream.read().decode(errors="replace").splitlines()[-lines:])
    except FileNotFoundError:
        return "(no log)"
