"""The environment of a rank: what is inherited, what is kept out, what is set, where ports are filled in. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from training import settings
from training.errors import LaunchError
from training.launch.api import LaunchOrder
from training.plan.job import ProcessPlan

#: Airflow's configuration, connections and variables: secrets that no rank needs.
_AIRFLOW = ("AIRFLOW_", "_AIRFLOW_")
#: Credentials of the tracking server: only the tracker talks to it.
_TRACKER = ("MLFLOW_TRACKING_PASSWORD", "MLFLOW_TRACKING_TOKEN")
#: What a shell may still hold of another cluster, or of Keras 2, and what a rank would take for its own (K01, K09).
_STALE = ("TF_CONFIG", "TF_USE_LEGACY_KERAS")
_STALE_PREFIX = "DMLC_"
_PORT = re.compile(r"\{port:([^{}]+)\}")


def keep_out_airflow(environ: Mapping[str, str]) -> dict[str, str]:
    """Return `environ` without what belongs to Airflow.

    >>> keep_out_airflow({"AIRFLOW__CORE__FERNET_KEY": "x", "AIRFLOW_CONN_DB": "y", "PATH": "/bin"})
    {'PATH': '/bin'}
    """
    return {name: value for name, value in environ.items() if not name.startswith(_AIRFLOW)}


def render_probe_environment(inherited: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a process that only answers a question about the user's code."""
    env = {name: value for name, value in keep_out_airflow(inherited).items() if not _is_stale(name)}
    return {name: value for name, value in env.items() if name not in _TRACKER} | {"TF_CPP_MIN_LOG_LEVEL": "2"}


def render_rank_environment(
    order: LaunchOrder, process: ProcessPlan, inherited: Mapping[str, str], ports: Mapping[str, int]
) -> dict[str, str]:
    """Return the whole environment of a rank.

    Raises:
        LaunchError: The plan asks for a port that it does not name.
    """
    env = {name: value for name, value in keep_out_airflow(inherited).items() if not _is_stale(name)}
    if not process.tracks:
        env = {name: value for name, value in env.items() if name not in _TRACKER}
    env |= render_thread_variables(process.threads)
    env |= {"PYTHONUNBUFFERED": "1", "PYTHONFAULTHANDLER": "1"}
    env |= order.env
    env |= {name: fill_ports(value, ports) for name, value in process.env.items()}
    return env | {
        settings.MARK: order.mark,
        settings.JOB_DIR: str(order.folder),
        settings.RANK: str(process.rank),
        settings.LOCAL_RANK: str(process.local_rank),
        settings.WORLD_SIZE: str(sum(not other.service for other in order.plan.processes)),
        settings.ATTEMPT: str(order.attempt),
    }


def _is_stale(name: str) -> bool:
    return name in _STALE or name.startswith(_STALE_PREFIX)


def render_thread_variables(threads: int) -> dict[str, str]:
    """Return the variables that hold the usual libraries to `threads` threads; they read them at import (K12).

    TensorFlow's pool between operations keeps two: with one, an operation that waits for a peer would stop all others.
    """
    pools = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "TF_NUM_INTRAOP_THREADS")
    return {**dict.fromkeys(pools, str(threads)), "TF_NUM_INTEROP_THREADS": str(max(2, threads))}


def fill_ports(text: str, ports: Mapping[str, int]) -> str:
    """Return `text` with every `{port:NAME}` replaced by its number.

    >>> fill_ports("127.0.0.1:{port:chief}", {"chief": 21001})
    '127.0.0.1:21001'

    Raises:
        LaunchError: There is no port of that name.
    """

    def fill(found: re.Match[str]) -> str:
        if found[1] not in ports:
            raise LaunchError(f"ports must be named in the job's plan. Received: {found[1]!r}; named: {sorted(ports)}.")
        return str(ports[found[1]])

    return _PORT.sub(fill, text)


def render_argv(process: ProcessPlan, ports: Mapping[str, int]) -> list[str]:
    """Return the command of a process. A bash that runs a pipe tells the failure of any part, not of the last (K15)."""
    program, *arguments = (fill_ports(text, ports) for text in process.argv)
    if program.rpartition("/")[2] == "bash":
        return [program, "-o", "pipefail", *arguments]
    return [program, *arguments]
