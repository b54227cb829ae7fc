"""What the live tests do to a running Airflow, and ask of it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import requests

from tools.airflow_api import AirflowApi, TaskState
from training.checkpoints.tensors import read_tensors
from training.run.folder import JobFolder, RunFolder, run_id_of
from training.run.job import JobResult, JobStatus, SupervisorRef
from training.run.sweep import find_marked
from training.serve import Services

#: Ends what hangs: a DAG run takes half a minute, and on a busy machine two.
WAIT_S = 300.0
DAGS = ("limited", "lone", "whole")
#: Of each training: one epoch of 1438 rows, 128 a step.
STEPS = 11
#: Without a heartbeat for so long, a task counts as dead: 120 s in our airflow.cfg.
HEARTBEAT_TIMEOUT_S = 8


def wait_until(
    done: Callable[[], Any], what: str, limit_s: float = WAIT_S, describe: Callable[[], str] = lambda: ""
) -> float:
    """Wait until `done`, and return how many seconds that took."""
    began = time.monotonic()
    while not done():
        assert time.monotonic() - began < limit_s, f"not within {limit_s} s: {what}. {describe()}"
        time.sleep(0.1)
    return time.monotonic() - began


@dataclass(frozen=True)
class Site:
    """A running Airflow with its MLflow."""

    services: Services
    home: Path
    api: AirflowApi

    def trigger(self, dag_id: str, name: str, *, go: bool = False) -> LiveRun:
        """Start a DAG run; `go`: without holding its training."""
        run = LiveRun(self, dag_id, name)
        if go:
            run.go()
        self.api.call(
            "POST", f"/api/v2/dags/{dag_id}/dagRuns", json={"logical_date": None, "dag_run_id": name, "conf": {}}
        )
        return run

    def find_mlflow_runs(self, run_id: str) -> list[dict[str, Any]]:
        """Return the MLflow runs of a run, the oldest first: `info` and `tags`."""
        with requests.Session() as session:
            session.trust_env = False
            url = f"{self.services.mlflow_url}/api/2.0/mlflow"
            found = session.get(f"{url}/experiments/search", params={"max_results": 100}, timeout=30).json()
            query = {
                "experiment_ids": [each["experiment_id"] for each in found["experiments"]],
                "filter": f"tags.`ganger.run_id` = '{run_id}'",
            }
            runs = session.post(f"{url}/runs/search", json=query, timeout=30).json().get("runs", [])
        return [
            {**run["info"], "tags": {tag["key"]: tag["value"] for tag in run["data"]["tags"]}}
            for run in sorted(runs, key=lambda run: run["info"]["start_time"])
        ]


@dataclass(frozen=True)
class LiveRun:
    """A DAG run, and the run folder that belongs to it."""

    site: Site
    dag_id: str
    dag_run_id: str

    @property
    def folder(self) -> RunFolder:
        return RunFolder.of(run_id_of(self.dag_id, self.dag_run_id), self.site.home)

    @property
    def job(self) -> JobFolder:
        return self.folder.job("train")

    @property
    def result(self) -> JobResult:
        result = JobResult.read(self.job.result)
        assert result is not None
        return result

    @property
    def supervisor(self) -> psutil.Process:
        ref = SupervisorRef.read(self.job.supervisor)
        assert ref is not None
        return psutil.Process(ref.pid)

    @property
    def mlflow(self) -> list[tuple[str, str]]:
        """Id and status of its MLflow runs."""
        return [(run["run_id"], run["status"]) for run in self.site.find_mlflow_runs(self.folder.run_id)]

    def go(self) -> None:
        """Let the training go on past the step at which it is held."""
        self.folder.path.mkdir(parents=True, exist_ok=True)
        (self.folder.path / "go").touch()

    def wait_for_step(self, step: int, attempt: int = 1) -> None:
        """Return when an attempt of the training has done `step` steps."""
        what = f"step {step} of {self.folder.run_id}"
        wait_until(lambda: self.read_step(attempt) >= step, what, describe=self.describe)

    def describe(self) -> str:
        """Return what a person needs who looks for the fault: states of the tasks, and the logs of those that began."""
        tasks = self.site.api.read_tasks(self.dag_id, self.dag_run_id)
        logs = [f"== {task.task_id}: {task.state}\n{self.read_log(task.try_number, task.task_id)}" for task in tasks]
        return "\n".join(log[-3000:] for log in logs)

    def read_step(self, attempt: int = 1) -> int:
        """Return how far an attempt of the training is."""
        status = JobStatus.read(self.job.status)
        return status.step if status is not None and status.attempt == attempt else 0

    def read_task(self, task_id: str = "train") -> TaskState:
        tasks = self.site.api.read_tasks(self.dag_id, self.dag_run_id)
        return next(task for task in tasks if task.task_id == task_id)

    def read_xcom(self, task_id: str) -> dict[str, Any]:
        """Return what a task returned last."""
        path = f"/api/v2/dags/{self.dag_id}/dagRuns/{self.dag_run_id}/taskInstances/{task_id}/xcomEntries/return_value"
        value = self.site.api.call("GET", path)["value"]
        values: dict[str, Any] = json.loads(value) if isinstance(value, str) else value
        return values

    def wait_for_end(self) -> str:
        """Return the state of the DAG run when it is over, and nothing of it is left."""
        wait_until(
            lambda: self.read_state() in ("success", "failed"),
            f"the end of {self.folder.run_id}",
            describe=self.describe,
        )
        assert self.find_processes() == []
        assert "RUNNING" not in dict(self.mlflow).values()
        return self.read_state()

    def read_state(self) -> str:
        return self.site.api.read_state(self.dag_id, self.dag_run_id)

    def read_log(self, number: int, task_id: str = "train") -> str:
        """Return the log of a try."""
        task = TaskState(task_id=task_id, try_number=number)
        return "\n".join(self.site.api.read_log(self.dag_id, self.dag_run_id, task, lines=10_000))

    def clear(self, task_id: str) -> None:
        """Clear a task with everything downstream, as the UI does by default."""
        body = {"dry_run": False, "dag_run_id": self.dag_run_id, "task_ids": [task_id], "include_downstream": True}
        body |= {"only_failed": False, "reset_dag_runs": True}
        self.site.api.call("POST", f"/api/v2/dags/{self.dag_id}/clearTaskInstances", json=body)

    def mark(self, task_id: str, state: str) -> None:
        """Mark a task as failed or successful."""
        path = f"/api/v2/dags/{self.dag_id}/dagRuns/{self.dag_run_id}/taskInstances/{task_id}"
        self.site.api.call("PATCH", path, json={"new_state": state})

    def has_joined(self, number: int) -> bool:
        """Whether try `number` of the train task runs and has found the gang."""
        task = self.read_task()
        is_there = task.try_number == number and task.state == "running"
        return is_there and "is running already" in self.read_log(number)

    def find_processes(self) -> list[int]:
        """Return the pids of all processes that bear the mark of the run."""
        return [process.pid for process in find_marked(f"{self.folder.run_id}/")]

    def find_task_processes(self) -> list[psutil.Process]:
        """Return the process of the train task and its runner, a worker of the local executor."""
        path = f"/api/v2/dags/{self.dag_id}/dagRuns/{self.dag_run_id}/taskInstances/train"
        title = f"airflow worker -- {self.site.api.call('GET', path)['id']}"
        scheduler = psutil.Process(self.site.services.pids["airflow-scheduler"])
        for process in scheduler.children(recursive=True):
            if " ".join(process.cmdline()).startswith(title):
                return [process, process.parent()]
        raise AssertionError(f"no process is called {title}")

    def read_steps(self, rank: int = 0) -> list[int]:
        """Return the steps that a rank has told of, in order."""
        events = [json.loads(line) for line in self.job.events.read_text().splitlines()]
        return [event["step"] for event in events if event["event"] == "step" and event["rank"] == rank]

    def read_weights(self) -> dict[str, Any]:
        """Return the tensors of the newest checkpoint, optimizer and all."""
        return read_tensors(max(self.folder.checkpoints.glob("step-*")) / "state.safetensors")
