"""Starts Airflow and MLflow beside each other, detached, and waits until they answer."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import psutil

from training.environments.lock import read_versions
from training.errors import LaunchError, PreflightError
from training.serve.commands import (
    ServiceAddresses,
    ServiceCommand,
    make_airflow_environment,
    render_airflow_commands,
    render_mlflow_command,
)
from training.serve.health import read_tail, wait_until_well
from training.serve.lock import services_lock
from training.serve.port import choose_port
from training.serve.record import ServiceRef, Services, ServicesFolder
from training.serve.secrets import read_or_make_secrets
from training.serve.stop import end_processes, stop_services

START_TIMEOUT_S = 180.0
AIRFLOW_PORT = 8080
MLFLOW_PORT = 5000
Log = Callable[[str], None]


def read_services(home: Path) -> Services | None:
    """Return the services of `home` when all of their processes live; None when they do not."""
    services = Services.read(ServicesFolder(home).record)
    return services if services is not None and services.find_dead() is None else None


def start_services(
    home: Path,
    *,
    airflow_port: int | None = None,
    mlflow_port: int | None = None,
    timeout_s: float = START_TIMEOUT_S,
    log: Log = print,
) -> Services:
    """Start Airflow and MLflow for `home` and return when both answer; those that run already are returned as they are.

    Args:
        home: Home folder of the runs; logs, databases and the record of the services go there.
        airflow_port: Port of Airflow; by default 8080 or the next free one.
        mlflow_port: Port of MLflow; by default 5000 or the next free one.
        timeout_s: How long both may take.
        log: Takes a line for the person who waits.

    Raises:
        PreflightError: A wanted port is taken, or Airflow or MLflow is not installed.
        LaunchError: A process died while it started; the message holds the end of its log.
        InfrastructureError: They did not answer in time.
    """
    folder = ServicesFolder(home.absolute())
    with services_lock(folder):
        running = read_services(folder.home)
        if running is not None:
            _refuse_other_ports(running, airflow_port, mlflow_port)
            log(f"Airflow and MLflow run already: {running.airflow_url}, {running.mlflow_url}")
            return running
        _end_leftovers(folder)
        addresses = ServiceAddresses(
            airflow_port=choose_port("Airflow", AIRFLOW_PORT, airflow_port),
            mlflow_port=choose_port("MLflow", MLFLOW_PORT, mlflow_port),
        )
        return _start_all(folder, addresses, timeout_s=timeout_s, log=log)


def serve_until_interrupted(
    home: Path, *, airflow_port: int | None = None, mlflow_port: int | None = None, log: Log = print
) -> None:
    """Start the services, then watch them until Ctrl-C or until one dies, and stop them all.

    Raises:
        LaunchError: One of them died. Otherwise raises as `start_services` does.
    """
    services = None
    try:
        services = start_services(home, airflow_port=airflow_port, mlflow_port=mlflow_port, log=log)
        log(f"Airflow: {services.airflow_url}\nMLflow:  {services.mlflow_url}\nStop with Ctrl-C.")
        while (dead := services.find_dead()) is None:
            time.sleep(1.0)
        raise LaunchError(f"{dead.name} died. Its log ends with:\n{read_tail(Path(dead.log))}")
    except KeyboardInterrupt:
        log("Stopping Airflow and MLflow …")
    finally:
        stop_services(home)


def _start_all(folder: ServicesFolder, addresses: ServiceAddresses, *, timeout_s: float, log: Log) -> Services:
    bin_dir = Path(sys.executable).parent
    secrets = read_or_make_secrets(folder.secrets)
    env = make_airflow_environment(folder, addresses, secrets, os.environ, bin_dir)
    services = Services(airflow_url=addresses.airflow_url, mlflow_url=addresses.mlflow_url)
    try:
        log("starting MLflow and Airflow …")
        mlflow = render_mlflow_command(bin_dir, folder.home, os.environ, addresses.mlflow_port)
        services = _start_more(folder, services, [mlflow])
        _migrate(folder, bin_dir, env, log)
        services = _start_more(folder, services, render_airflow_commands(bin_dir, env, addresses.airflow_port))
        wait_until_well(services, timeout_s=timeout_s, log=log)
    except BaseException:
        services = Services.read(folder.record) or services
        end_processes(services)
        folder.record.unlink(missing_ok=True)
        raise
    return services


def _start_more(folder: ServicesFolder, services: Services, commands: Iterable[ServiceCommand]) -> Services:
    # Written down after each start, so that whatever interrupts us, the next stop finds all that was started.
    for command in commands:
        services = services.model_copy(update={"processes": (*services.processes, _spawn(folder, command))})
        services.write(folder.record)
    return services


def _spawn(folder: ServicesFolder, command: ServiceCommand) -> ServiceRef:
    log = folder.log(command.name)
    log.parent.mkdir(parents=True, exist_ok=True)
    if not Path(command.argv[0]).exists():
        raise PreflightError(f"{command.argv[0]} must exist to start {command.name}. Run: make setup")
    with log.open("ab") as stream:
        process = subprocess.Popen(
            command.argv,
            env=dict(command.env),
            cwd=folder.path,
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    started_at = psutil.Process(process.pid).create_time()
    # It is meant to outlive us: told that the process is over, Popen does not warn that nobody waited for it.
    process.returncode = 0
    return ServiceRef(name=command.name, pid=process.pid, started_at=started_at, log=str(log))


def _migrate(folder: ServicesFolder, bin_dir: Path, env: dict[str, str], log: Log) -> None:
    """Bring the database up to this Airflow, once per version: it costs 6 seconds."""
    version = read_versions(bin_dir.parent).get("apache-airflow-core", "")
    done = folder.migrated.read_text(encoding="utf-8") if folder.migrated.exists() else ""
    if version and done == version and (folder.airflow / "airflow.db").exists():
        return
    folder.airflow.mkdir(parents=True, exist_ok=True)
    log_file = folder.log("airflow-migrate")
    log("making Airflow's database …")
    with log_file.open("wb") as stream:
        command = [str(bin_dir / "airflow"), "db", "migrate"]
        ended = subprocess.run(
            command, env=env, stdin=subprocess.DEVNULL, stdout=stream, stderr=subprocess.STDOUT, check=False
        )
    if ended.returncode != 0:
        raise LaunchError(f"Airflow's database cannot be made. The log ends with:\n{read_tail(log_file)}")
    folder.migrated.write_text(version, encoding="utf-8")


def _end_leftovers(folder: ServicesFolder) -> None:
    half = Services.read(folder.record)
    if half is not None:
        end_processes(half)
        folder.record.unlink(missing_ok=True)


def _refuse_other_ports(services: Services, airflow_port: int | None, mlflow_port: int | None) -> None:
    for name, url, port in (
        ("Airflow", services.airflow_url, airflow_port),
        ("MLflow", services.mlflow_url, mlflow_port),
    ):
        if port is not None and not url.endswith(f":{port}"):
            raise PreflightError(f"{name} already runs at {url} and was asked for port {port}. Run: make stop")
