"""What the writer needs of a tracking server, in our own words, and the two ways in which a server says no.

`mlflow_store` fulfils it with MLflow; tests fulfil it with a store that fails by script. Every call may be repeated
with the same arguments without changing anything: that is what makes replay safe.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from training.errors import TrackingError

#: MLflow's limits of one `log_batch` call (mlflow/utils/validation.py, 3.17): entries of a kind, and bytes of JSON.
MAX_METRICS = 1000
MAX_PARAMS = 100
MAX_TAGS = 100
MAX_REQUEST_BYTES = 1_000_000


class StoreAwayError(TrackingError):
    """The server cannot be reached, is overloaded or refuses us at the moment: the same call may succeed later."""


class StoreRefusedError(TrackingError):
    """The server understood the call and will never take it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricPoint:
    """One value of one metric; two equal ones are one point to the server."""

    name: str
    value: float
    step: int
    time_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunState:
    """What the server knows of a run."""

    experiment_id: str
    status: str
    params: Mapping[str, str]
    tags: Mapping[str, str]


class TrackingStore(Protocol):
    """A tracking server. Every method raises `StoreAwayError` or `StoreRefusedError`."""

    def open_experiment(self, name: str) -> str:
        """Return the id of the experiment, made where there is none."""

    def find_run(self, experiment_id: str, tag: str, value: str) -> str | None:
        """Return the newest run of the experiment with that tag, or None."""

    def create_run(self, experiment_id: str, name: str, tags: Mapping[str, str], start_ms: int) -> str:
        """Make a running run and return its id."""

    def read_run(self, run_id: str) -> RunState | None:
        """Return what is known of the run; None where it was deleted or never was."""

    def log_params(self, run_id: str, params: Mapping[str, str]) -> None:
        """Write at most `MAX_PARAMS` params, none of which the run has with another value."""

    def log_metrics(self, run_id: str, points: list[MetricPoint]) -> None:
        """Write at most `MAX_METRICS` points."""

    def set_tags(self, run_id: str, tags: Mapping[str, str]) -> None:
        """Set at most `MAX_TAGS` tags."""

    def set_status(self, run_id: str, status: str, end_ms: int | None) -> None:
        """Set RUNNING, FINISHED, FAILED or KILLED."""

    def last_point(self, run_id: str, name: str) -> tuple[int, float] | None:
        """Return step and value of the last point of a metric."""

    def log_text(self, run_id: str, text: str, artifact: str) -> None:
        """Write a text artifact at the path `artifact`."""

    def log_model(self, run_id: str, folder: Path, tags: Mapping[str, str]) -> str:
        """Upload a model folder as the run's logged model and return its URI; the one that is there stays."""


def split_texts(texts: Mapping[str, str], count: int) -> Iterator[dict[str, str]]:
    """Yield `texts` in parts of at most `count` entries that one request can carry.

    >>> [len(part) for part in split_texts({str(n): "x" for n in range(101)}, 100)]
    [100, 1]
    """
    part: dict[str, str] = {}
    size = 0
    for name, value in texts.items():
        # A 4-byte character takes 12 bytes of JSON.
        bytes_ = len(json.dumps([name, value])) + 32
        if part and (len(part) >= count or size + bytes_ > MAX_REQUEST_BYTES // 2):
            yield part
            part, size = {}, 0
        part[name] = value
        size += bytes_
    if part:
        yield part
