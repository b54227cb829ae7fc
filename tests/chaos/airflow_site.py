"""A live Airflow (API server, scheduler, DAG processor) whose tasks train in the suite's home folder."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

import psutil

from training import settings
from training.serve.commands import (
    ServiceAddresses,
    ServiceCommand,
    make_airflow_environment,
    render_airflow_commands,
)
from training.serve.health import fetch
from training.serve.port import choose_port
from training.serve.record import ServicesFolder
from training.serve.secrets import read_or_make_secrets

_START_TIMEOUT_S = 180.0
_WAIT_S = 20.0
#: So that the gang still trains when Airflow tries again, 10 s after its task was killed and whatever that takes.
_STEP_S = "0.8"
_NEEDED = ("airflow-api-server", "airflow-scheduler", "airflow-dag-processor")
#: How Airflow calls the process that runs a task (`airflow.sdk.execution_time.task_runner`): by the task instance's id,
#: where workers of the executor bear the executor's name.
_TASK_TITLE = re.compile(r"airflow worker -- [0-9a-f-]{36}$")


class AirflowSite:
    """Three processes of Airflow, on a database of their own.

    Args:
        home: Home folder of the runs.
        tracking_uri: Address of the MLflow server.
        environ: The environment of all that runs here.

    Attributes:
        url: Where it answers.
        pipelines: Folder of the pipelines that become DAGs.
    """

    def __init__(self, home: Path, tracking_uri: str, environ: Mapping[str, str]) -> None:
        self.pipelines = home.parent / "pipelines"
        self.pipelines.mkdir(exist_ok=True)
        mlflow_port = urlsplit(tracking_uri).port
        assert mlflow_port is not None
        addresses = ServiceAddresses(airflow_port=choose_port("Airflow", 18080, None), mlflow_port=mlflow_port)
        self.url = addresses.airflow_url
        self._folder = ServicesFolder(home)
        secrets = read_or_make_secrets(self._folder.secrets)
        environ = {**environ, settings.PIPELINES: str(self.pipelines), "CHAOS_STEP_S": _STEP_S}
        self._env = make_airflow_environment(self._folder, addresses, secrets, environ, Path(sys.executable).parent)
        self._port = addresses.airflow_port
        self._services: dict[str, psutil.Popen] = {}

    def start(self) -> None:
        """Make the database, start all parts, and wait until they answer."""
        bin_dir = Path(sys.executable).parent
        self._folder.airflow.mkdir(parents=True, exist_ok=True)
        migrate = [str(bin_dir / "airflow"), "db", "migrate"]
        subprocess.run(migrate, env=self._env, check=True, capture_output=True, timeout=_START_TIMEOUT_S)
        for command in render_airflow_commands(bin_dir, self._env, self._port):
            if command.name in _NEEDED:
                self._services[command.name] = self._spawn(command)
        end = time.monotonic() + _START_TIMEOUT_S
        while fetch(f"{self.url}/api/v2/monitor/health") is None:
            assert time.monotonic() < end, f"Airflow must answer at {self.url}; see {self._folder.path}"
            time.sleep(0.2)

    def stop(self) -> None:
        """End all parts."""
        processes = list(self._services.values())
        found = [child for process in processes for child in process.children(recursive=True)] + processes
        for process in found:
            process.kill()
        psutil.wait_procs(found, timeout=_WAIT_S)
        self._services.clear()

    def pids(self) -> set[int]:
        """Return the pids of all parts, their children included."""
        found = set()
        for service in self._services.values():
            found |= {service.pid, *(child.pid for child in service.children(recursive=True))}
        return found

    def kill_task(self) -> None:
        """Kill the process that runs the only task that runs; whoever started it lives, and is told by the kernel."""
        children = self._services["airflow-scheduler"].children(recursive=True)
        (task,) = [child for child in children if _TASK_TITLE.match(" ".join(child.cmdline()).strip())]
        task.kill()

    def _spawn(self, command: ServiceCommand) -> psutil.Popen:
        log = self._folder.log(command.name)
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as stream:
            return psutil.Popen(
                command.argv, env=dict(command.env), cwd=self._folder.path, stdout=stream, stderr=subprocess.STDOUT
            )
