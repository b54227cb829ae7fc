"""What all trainings of the suite share: a home folder, a real MLflow server, and the undisturbed run."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import yaml

from tests.chaos.airflow_site import AirflowSite
from tests.chaos.watched_run import WatchedRun
from tests.tracking.mlflow_server import MlflowServer
from training import settings
from training.checkpoints.store import find_newest
from training.run.folder import JobFolder
from training.run.job import JobResult
from training.serve.health import fetch

#: Of each training; as many slots, so that machines with one core run it, too.
_RANKS = 2
_USER_FILES = Path(__file__).with_name("user_files")


@dataclass(slots=True)
class Site:
    """The surroundings of all trainings.

    Attributes:
        root: Folder of everything.
        server: The MLflow server.
        undisturbed: The run that the others are compared with.
    """

    root: Path
    server: MlflowServer = field(init=False)
    undisturbed: WatchedRun | None = None
    _airflow: AirflowSite | None = None

    def __post_init__(self) -> None:
        (self.root / "mlflow").mkdir(parents=True, exist_ok=True)
        self.server = MlflowServer(self.root / "mlflow")

    @property
    def home(self) -> Path:
        """The home folder of all runs; the prepared dataset in it is shared."""
        return self.root / "home"

    @property
    def environ(self) -> dict[str, str]:
        """Return the environment of whatever runs here."""
        env = {name: value for name, value in os.environ.items() if not name.startswith(("GANGER_", "AIRFLOW"))}
        kept = {name: os.environ[name] for name in (settings.ENGINES, settings.CACHE) if name in os.environ}
        ours = {settings.HOME: str(self.home), settings.TRACKING_URI: self.server.uri, settings.SLOTS: str(_RANKS)}
        return {**env, **kept, **ours}

    def write_pipeline(self, folder: Path, name: str, options: dict[str, object]) -> Path:
        """Write the pipeline of one training, its model file beside it; `options` are fields of its `train` block."""
        folder.mkdir(parents=True, exist_ok=True)
        spec = yaml.safe_load((_USER_FILES / "chaos.yaml").read_text())
        spec |= {"name": name, "register": {"model": name}}
        spec["train"] |= options
        (folder / "slow_mlp.py").write_text((_USER_FILES / "slow_mlp.py").read_text())
        path = folder / f"{name}.yaml"
        path.write_text(yaml.safe_dump(spec, sort_keys=False))
        return path

    def ensure_server(self) -> None:
        """Have the MLflow server answer."""
        if fetch(f"{self.server.uri}/health") is None:
            self.server.kill()
            self.server.launch()
            self.server.wait()

    def weights(self) -> dict[str, object]:
        """Return the weights, and the state of the optimizer, that the undisturbed run ended with."""
        assert self.undisturbed is not None
        newest = find_newest(self.undisturbed.folder.checkpoints, print)
        assert newest is not None
        return dict(newest.read())

    def evaluation(self) -> dict[str, float]:
        """Return the metrics that the undisturbed run was evaluated with."""
        assert self.undisturbed is not None
        return read_evaluation(self.undisturbed.folder.job("evaluate"))

    def spared(self) -> set[int]:
        """Return the pids of what is here to stay: this process, MLflow, Airflow."""
        here = {os.getpid(), *(self._airflow.pids() if self._airflow is not None else ())}
        for process in psutil.Process().children():
            if self._serves(process):
                here |= {process.pid, *(child.pid for child in process.children(recursive=True))}
        return here

    def start_airflow(self) -> AirflowSite:
        """Return a live Airflow, started now if none runs."""
        if self._airflow is None:
            self._airflow = AirflowSite(self.home, self.server.uri, self.environ)
            self._airflow.start()
        return self._airflow

    def stop_airflow(self) -> None:
        """End Airflow, if it runs: it would take the cores from the trainings after it."""
        if self._airflow is not None:
            self._airflow.stop()
            self._airflow = None

    def close(self) -> None:
        """End all servers."""
        self.stop_airflow()
        self.server.kill()

    def _serves(self, process: psutil.Process) -> bool:
        try:
            return str(self.root / "mlflow") in " ".join(process.cmdline())
        except psutil.Error:
            return False


def read_evaluation(job: JobFolder) -> dict[str, float]:
    """Return the metrics of a job `evaluate`, which loaded the saved model; empty where there is none."""
    result = JobResult.read(job.result)
    return dict(result.values.get("metrics", {})) if result is not None else {}
