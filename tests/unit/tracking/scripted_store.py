"""A tracking server in memory that keeps MLflow's rules and fails by script."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from training.tracking.store import (
    MAX_METRICS,
    MAX_PARAMS,
    MAX_TAGS,
    MetricPoint,
    RunState,
    StoreAwayError,
    StoreRefusedError,
)


@dataclass
class ServerRun:
    experiment_id: str
    name: str
    status: str = "RUNNING"
    end_ms: int | None = None
    params: dict[str, str] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    points: list[MetricPoint] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    models: list[str] = field(default_factory=list)
    statuses: list[str] = field(default_factory=list)


class ScriptedStore:
    """Implements `TrackingStore`; `store` itself is the factory's answer for every address.

    Attributes:
        away: Every call fails as long as it is set.
        failures: Errors of the next calls, in order; None lets a call through.
        answer_lost: The next that many writing calls are carried out and then fail.
        gate: Calls wait for it: clear it to make the server hang.
        refuse: Metric names that the server never takes.
        calls: Names of all calls that arrived.
    """

    def __init__(self) -> None:
        self.runs: dict[str, ServerRun] = {}
        self.experiments: dict[str, str] = {}
        self.deleted_experiments: set[str] = set()
        self.away = False
        self.failures: deque[Exception | None] = deque()
        self.answer_lost = 0
        self.gate = threading.Event()
        self.gate.set()
        self.refuse: set[str] = set()
        self.calls: list[str] = []
        self.uris: list[str] = []

    def connect(self, uri: str) -> ScriptedStore:
        self.uris.append(uri)
        if self.away:
            raise StoreAwayError("connection refused")
        return self

    @property
    def only_run(self) -> ServerRun:
        (run,) = self.runs.values()
        return run

    @contextmanager
    def _call(self, name: str, *, writes: bool = False) -> Iterator[None]:
        self.calls.append(name)
        self.gate.wait()
        if self.away:
            raise StoreAwayError("connection refused")
        if self.failures and (error := self.failures.popleft()):
            raise error
        yield
        if writes and self.answer_lost:
            self.answer_lost -= 1
            raise StoreAwayError("read timed out")

    def _run(self, run_id: str) -> ServerRun:
        if run_id not in self.runs:
            raise StoreRefusedError(f"no run {run_id}")
        return self.runs[run_id]

    def open_experiment(self, name: str) -> str:
        with self._call("open_experiment"):
            if name in self.deleted_experiments:
                raise StoreRefusedError(f"experiment {name} is in the trash; restore it")
            return self.experiments.setdefault(name, str(len(self.experiments) + 1))

    def find_run(self, experiment_id: str, tag: str, value: str) -> str | None:
        with self._call("find_run"):
            found = [k for k, r in self.runs.items() if r.experiment_id == experiment_id and r.tags.get(tag) == value]
            return found[-1] if found else None

    def create_run(self, experiment_id: str, name: str, tags: Mapping[str, str], start_ms: int) -> str:
        run_id = f"run{len(self.runs)}"
        with self._call("create_run", writes=True):
            self.runs[run_id] = ServerRun(experiment_id, name, tags=dict(tags))
        return run_id

    def read_run(self, run_id: str) -> RunState | None:
        with self._call("read_run"):
            run = self.runs.get(run_id)
            if run is None:
                return None
            return RunState(
                experiment_id=run.experiment_id, status=run.status, params=dict(run.params), tags=dict(run.tags)
            )

    def log_params(self, run_id: str, params: Mapping[str, str]) -> None:
        with self._call("log_params", writes=True):
            run = self._run(run_id)
            changed = [name for name, value in params.items() if run.params.get(name, value) != value]
            if changed or len(params) > MAX_PARAMS or any(len(value) > 6000 for value in params.values()):
                raise StoreRefusedError(f"INVALID_PARAMETER_VALUE {changed}")
            run.params.update(params)

    def log_metrics(self, run_id: str, points: list[MetricPoint]) -> None:
        with self._call("log_metrics", writes=True):
            run = self._run(run_id)
            if len(points) > MAX_METRICS or self.refuse & {point.name for point in points}:
                raise StoreRefusedError("INVALID_PARAMETER_VALUE")
            run.points += [point for point in points if point not in run.points]

    def set_tags(self, run_id: str, tags: Mapping[str, str]) -> None:
        with self._call("set_tags", writes=True):
            if len(tags) > MAX_TAGS or any(len(value) > 8000 for value in tags.values()):
                raise StoreRefusedError("INVALID_PARAMETER_VALUE")
            self._run(run_id).tags.update(tags)

    def set_status(self, run_id: str, status: str, end_ms: int | None) -> None:
        with self._call("set_status", writes=True):
            run = self._run(run_id)
            run.status, run.end_ms = status, end_ms
            run.statuses.append(status)

    def last_point(self, run_id: str, name: str) -> tuple[int, float] | None:
        with self._call("last_point"):
            points = [point for point in self._run(run_id).points if point.name == name]
            last = max(points, key=lambda point: (point.step, point.time_ms), default=None)
            return (last.step, last.value) if last else None

    def log_text(self, run_id: str, text: str, artifact: str) -> None:
        with self._call("log_text", writes=True):
            self._run(run_id).texts[artifact] = text

    def log_model(self, run_id: str, folder: Path, tags: Mapping[str, str]) -> str:
        with self._call("log_model", writes=True):
            run = self._run(run_id)
            if str(folder) not in run.models:
                run.models.append(str(folder))
            return f"models:/m-{run.models.index(str(folder))}"


def failing_connect(error: Exception) -> Callable[[str], ScriptedStore]:
    def connect(uri: str) -> ScriptedStore:
        raise error

    return connect
