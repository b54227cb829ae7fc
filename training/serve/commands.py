"""The commands of the services and the environment they get. Pure: what is started can be printed and tested."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from training import settings
from training.serve.port import LOOPBACK
from training.serve.record import ServicesFolder

#: Measured on 2 cores: the four started beside each other answer after 15 s, `airflow standalone` after 26 to 34 s.
#: Logs are read from the disk they are written to, so nobody has to serve them.
AIRFLOW_PARTS = {
    "airflow-api-server": ("api-server", "--workers", "1"),
    "airflow-scheduler": ("scheduler", "--skip-serve-logs"),
    "airflow-dag-processor": ("dag-processor",),
    "airflow-triggerer": ("triggerer", "--skip-serve-logs"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceAddresses:
    """Where the services answer."""

    airflow_port: int
    mlflow_port: int

    @property
    def airflow_url(self) -> str:
        """Address of the Airflow UI and API."""
        return f"http://{LOOPBACK}:{self.airflow_port}"

    @property
    def mlflow_url(self) -> str:
        """Address of the MLflow UI and API; the tracking URI."""
        return f"http://{LOOPBACK}:{self.mlflow_port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceCommand:
    """A process to start."""

    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str]


def render_airflow_commands(bin_dir: Path, env: Mapping[str, str], port: int) -> list[ServiceCommand]:
    """Return the commands of the parts of Airflow; all of them share `env`."""
    airflow = str(bin_dir / "airflow")
    ends = {"airflow-api-server": ("--host", LOOPBACK, "--port", str(port))}
    return [
        ServiceCommand(name=name, argv=(airflow, *arguments, *ends.get(name, ())), env=env)
        for name, arguments in AIRFLOW_PARTS.items()
    ]


def render_mlflow_command(bin_dir: Path, home: Path, environ: Mapping[str, str], port: int) -> ServiceCommand:
    """Return the command of the MLflow server, whose store is the one that runs without a server use, too.

    Artifacts have their paths for addresses: those of an experiment that the server made could be reached through it
    alone otherwise, and `ganger run` after `make stop` would be refused.
    """
    argv = (
        str(bin_dir / "mlflow"),
        "server",
        # One worker and no job runner: up in 20 s with 0.5 GB instead of 38 s and a dozen processes.
        *("--workers", "1"),
        *("--host", LOOPBACK, "--port", str(port)),
        *("--backend-store-uri", f"sqlite:///{home / 'mlflow.db'}"),
        *("--default-artifact-root", (home / "mlartifacts").as_uri(), "--no-serve-artifacts"),
    )
    env = without_proxy({**environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"})
    env.pop(settings.TRACKING_URI, None)
    return ServiceCommand(name="mlflow", argv=argv, env=env)


def make_airflow_environment(
    folder: ServicesFolder,
    addresses: ServiceAddresses,
    secrets: Mapping[str, str],
    environ: Mapping[str, str],
    bin_dir: Path,
) -> dict[str, str]:
    """Return the environment of all parts of Airflow, and so of every task.

    Args:
        folder: The files of the services.
        addresses: Where Airflow and MLflow will answer.
        secrets: Variables that all parts must have in common, see `training.serve.secrets`.
        environ: What to add to.
        bin_dir: Folder of the commands; first on PATH, since Airflow calls itself by name.
    """
    repository = settings.REPOSITORY
    return without_proxy(
        {
            **environ,
            **secrets,
            "PATH": f"{bin_dir}{os.pathsep}{environ.get('PATH', os.defpath)}",
            "AIRFLOW_HOME": str(folder.airflow),
            "AIRFLOW_CONFIG": str(repository / "airflow.cfg"),
            "AIRFLOW__CORE__DAGS_FOLDER": str(repository / "dags"),
            "AIRFLOW__CORE__PLUGINS_FOLDER": str(repository / "plugins"),
            # Both, or every task fails with "Connection refused".
            "AIRFLOW__API__PORT": str(addresses.airflow_port),
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{addresses.airflow_url}/execution/",
            "AIRFLOW__API__BASE_URL": addresses.airflow_url,
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{folder.airflow / 'airflow.db'}",
            settings.HOME: str(folder.home),
            settings.TRACKING_URI: addresses.mlflow_url,
            settings.MLFLOW_UI: addresses.mlflow_url,
        }
    )


def without_proxy(environ: Mapping[str, str]) -> dict[str, str]:
    """Return `environ` with this machine exempt from any proxy: the services call each other.

    >>> without_proxy({"NO_PROXY": "intern.test"})["no_proxy"]
    'intern.test,127.0.0.1,localhost'
    """
    exempt = environ.get("no_proxy") or environ.get("NO_PROXY") or ""
    value = ",".join([part for part in exempt.split(",") if part] + [LOOPBACK, "localhost"])
    return {**environ, "no_proxy": value, "NO_PROXY": value}
