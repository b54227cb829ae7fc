"""What is known of the running services: `services/services.json` in the home folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import psutil
from pydantic import ConfigDict

from training.run.folder import FileModel

CLOCK_TOLERANCE_S = 1.0


class ServiceRef(FileModel):
    """A started process; pid and start time together name it for good."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    pid: int
    started_at: float
    """As the kernel counts (psutil's `create_time`), seconds since the epoch."""
    log: str
    """File that its output goes to."""

    def find_process(self) -> psutil.Process | None:
        """Return the process if it still lives; another one that got its pid does not count."""
        try:
            process = psutil.Process(self.pid)
            same = abs(process.create_time() - self.started_at) < CLOCK_TOLERANCE_S
            return process if same and process.status() != psutil.STATUS_ZOMBIE else None
        except psutil.NoSuchProcess:
            return None


class Services(FileModel):
    """Airflow and MLflow of one home folder."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    airflow_url: str
    mlflow_url: str
    processes: tuple[ServiceRef, ...] = ()

    @property
    def pids(self) -> dict[str, int]:
        """Name to pid of every process that was started."""
        return {process.name: process.pid for process in self.processes}

    def find_dead(self) -> ServiceRef | None:
        """Return a process that has ended; None when all live."""
        return next((process for process in self.processes if process.find_process() is None), None)


@dataclass(frozen=True, slots=True)
class ServicesFolder:
    """The files of the services of one home folder."""

    home: Path

    @property
    def path(self) -> Path:
        """Where everything of the services is, but for MLflow's data."""
        return self.home / "services"

    @property
    def record(self) -> Path:
        """The `Services` that were started last; removed when they were stopped."""
        return self.path / "services.json"

    @property
    def lock(self) -> Path:
        """Locked (flock) while services are being started or stopped."""
        return self.path / "lock"

    @property
    def secrets(self) -> Path:
        """The secrets that the processes of this Airflow share; readable by the owner only."""
        return self.path / "secrets.json"

    @property
    def airflow(self) -> Path:
        """`$AIRFLOW_HOME`."""
        return self.path / "airflow"

    @property
    def migrated(self) -> Path:
        """Says which version of Airflow the database was last migrated for."""
        return self.airflow / "migrated"

    def log(self, name: str) -> Path:
        """Return the log file of a service."""
        return self.path / "logs" / f"{name}.log"
