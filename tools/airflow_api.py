"""The few calls of Airflow's REST API (v2) that the demo makes."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import requests

from training.errors import InfrastructureError, LaunchError

TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskState:
    """A task instance of a DAG run.

    Attributes:
        task_id: Name of the task.
        state: Airflow's word for its state; empty before it has one.
        try_number: Number of the current try.
        duration_s: How long the last try took; None while it is not over.
        started: When the last try began; None where it has not.
    """

    task_id: str
    state: str = ""
    try_number: int = 1
    duration_s: float | None = None
    started: datetime | None = None

    @property
    def is_over(self) -> bool:
        """Whether the task will not change by itself any more."""
        return self.state in {"success", "failed", "skipped", "upstream_failed", "removed"}


def parse_task(entry: dict[str, Any]) -> TaskState:
    """Return the state of a task from an entry of the API's answer."""
    start = entry.get("start_date")
    return TaskState(
        task_id=entry["task_id"],
        state=entry.get("state") or "",
        try_number=max(1, entry.get("try_number") or 1),
        duration_s=entry.get("duration") if start and entry.get("end_date") else None,
        started=datetime.fromisoformat(start) if start else None,
    )


@dataclass(slots=True)
class AirflowApi:
    """A client of one Airflow, whose users are all administrators (`simple_auth_manager_all_admins`)."""

    url: str
    _session: requests.Session = field(default_factory=requests.Session)

    def __post_init__(self) -> None:
        # The server is on this machine: no proxy.
        self._session.trust_env = False

    def login(self) -> None:
        """Fetch a token. Raises as `call` does."""
        token = self.call("GET", "/auth/token")["access_token"]
        self._session.headers["Authorization"] = f"Bearer {token}"

    def call(self, method: str, path: str, **arguments: Any) -> dict[str, Any]:
        """Return the JSON answer of a call.

        Raises:
            InfrastructureError: Airflow does not answer.
            LaunchError: Airflow refuses; the message holds its reason.
        """
        try:
            answer = self._session.request(method, f"{self.url}{path}", timeout=TIMEOUT_S, **arguments)
        except requests.RequestException as error:
            raise InfrastructureError(
                f"Airflow at {self.url} must answer and does not ({type(error).__name__})."
            ) from error
        if not answer.ok:
            raise LaunchError(f"Airflow refused {method} {path} with {answer.status_code}: {answer.text[:500]}")
        body: dict[str, Any] = answer.json()
        return body

    def has_dag(self, dag_id: str) -> bool:
        """Return whether the DAG has been parsed. Raises as `call` does."""
        found = self.call("GET", "/api/v2/dags", params={"dag_id_pattern": dag_id, "limit": 100})
        return any(dag["dag_id"] == dag_id for dag in found["dags"])

    def import_errors(self) -> list[str]:
        """Return what kept DAG files from being parsed. Raises as `call` does."""
        errors = self.call("GET", "/api/v2/importErrors")["import_errors"]
        return [f"{error['filename']}: {error['stack_trace'].strip().splitlines()[-1]}" for error in errors]

    def trigger(self, dag_id: str) -> str:
        """Unpause the DAG, start a run of it and return the id of that DAG run. Raises as `call` does."""
        self.call("PATCH", f"/api/v2/dags/{dag_id}", json={"is_paused": False})
        run = self.call("POST", f"/api/v2/dags/{dag_id}/dagRuns", json={"logical_date": None, "conf": {}})
        return str(run["dag_run_id"])

    def read_state(self, dag_id: str, dag_run_id: str) -> str:
        """Return the state of a DAG run. Raises as `call` does."""
        return str(self.call("GET", f"/api/v2/dags/{dag_id}/dagRuns/{dag_run_id}")["state"])

    def read_tasks(self, dag_id: str, dag_run_id: str) -> list[TaskState]:
        """Return the tasks of a DAG run, those that began first in front. Raises as `call` does."""
        found = self.call("GET", f"/api/v2/dags/{dag_id}/dagRuns/{dag_run_id}/taskInstances")["task_instances"]
        tasks = [parse_task(entry) for entry in found]
        return sorted(tasks, key=lambda task: (task.started is None, task.started and task.started.timestamp()))

    def read_log(self, dag_id: str, dag_run_id: str, task: TaskState, lines: int = 40) -> list[str]:
        """Return the last lines of the log of a task's last try. Raises as `call` does."""
        path = f"/api/v2/dags/{dag_id}/dagRuns/{dag_run_id}/taskInstances/{task.task_id}/logs/{task.try_number}"
        content = self.call("GET", path, headers={"Accept": "application/json"}).get("content", [])
        return [str(entry.get("event", "")) if isinstance(entry, dict) else str(entry) for entry in content][-lines:]
