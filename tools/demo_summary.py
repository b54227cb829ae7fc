"""What the demo shows at its end. Pure: numbers in, tables out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from tools.airflow_api import TaskState
from training.run.folder import RunFolder
from training.run.job import JobResult, TrackingRef

UNKNOWN = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoSummary:
    """Everything that the demo says at its end.

    Attributes:
        state: State of the DAG run.
        run_id: Id of the run's folder.
        tasks: Its tasks.
        workers: Training processes; None when the training left no result.
        steps: Steps trained.
        accuracy: Accuracy on the held-out rows.
        rows: Number of held-out rows.
        mlflow_run_id: Id of the MLflow run.
        mlflow_status: MLflow's word for its state.
        model: Registered model.
        version: Its version.
        alias: Alias that leads to it.
        seconds: How long the DAG run took.
    """

    dag_id: str
    dag_run_id: str
    state: str
    run_id: str
    tasks: Sequence[TaskState] = ()
    workers: int | None = None
    steps: int | None = None
    accuracy: float | None = None
    rows: int | None = None
    mlflow_run_id: str | None = None
    mlflow_status: str | None = None
    model: str | None = None
    version: str | None = None
    alias: str | None = None
    seconds: float | None = None
    urls: dict[str, str] = field(default_factory=dict)


def read_values(run: RunFolder, job: str) -> dict[str, Any]:
    """Return what a job of the run handed on; empty when it left no result."""
    result = JobResult.read(run.job(job).result)
    return dict(result.values) if result else {}


def read_outcome(run: RunFolder) -> dict[str, Any]:
    """Return the fields of a `DemoSummary` that the run's folder tells."""
    train = JobResult.read(run.job("train").result)
    tracking = TrackingRef.read(run.tracking)
    evaluated, registered = read_values(run, "evaluate"), read_values(run, "register_model")
    return {
        "workers": len(train.exit_codes) if train and train.exit_codes else None,
        "steps": train.values.get("steps") if train else None,
        "accuracy": evaluated.get("metrics", {}).get("accuracy"),
        "rows": evaluated.get("rows"),
        "mlflow_run_id": tracking.run_id if tracking else None,
        "model": registered.get("model"),
        "version": str(registered["version"]) if "version" in registered else None,
        "alias": registered.get("alias"),
    }


def render_summary(summary: DemoSummary) -> Group:
    """Return the tables of the demo, for a console to print."""
    tasks = Table()
    tasks.add_column("task")
    tasks.add_column("state")
    tasks.add_column("duration", justify="right")
    for task in summary.tasks:
        tasks.add_row(task.task_id, _colour(task.state), format_seconds(task.duration_s))
    facts = Table(show_header=False, box=None, pad_edge=False)
    facts.add_column(style="bold")
    facts.add_column(overflow="fold")
    for name, value in list_facts(summary):
        facts.add_row(name, value)
    return Group(tasks, facts)


def list_facts(summary: DemoSummary) -> list[tuple[str, str]]:
    """Return name and text of each fact, in the order they are shown."""
    of_rows = f" on {summary.rows} held-out rows" if summary.rows else ""
    alias = f" ({summary.model}@{summary.alias})" if summary.alias else ""
    status = f" ({summary.mlflow_status})" if summary.mlflow_status else ""
    return [
        ("DAG run", summary.dag_run_id),
        ("DAG run state", summary.state),
        ("duration", format_seconds(summary.seconds)),
        ("run", summary.run_id),
        ("workers", _or_unknown(summary.workers)),
        ("steps", _or_unknown(summary.steps)),
        ("accuracy", UNKNOWN if summary.accuracy is None else f"{summary.accuracy:.4f}{of_rows}"),
        ("MLflow run", f"{_or_unknown(summary.mlflow_run_id)}{status}"),
        ("registered model", f"{summary.model} version {summary.version}{alias}" if summary.model else UNKNOWN),
        *summary.urls.items(),
    ]


def format_seconds(seconds: float | None) -> str:
    """Return a duration for people.

    >>> format_seconds(7.25), format_seconds(61), format_seconds(None)
    ('7.2 s', '61 s', '-')
    """
    if seconds is None:
        return UNKNOWN
    return f"{seconds:.1f} s" if seconds < 60 else f"{seconds:.0f} s"


def _or_unknown(value: object) -> str:
    return UNKNOWN if value is None else str(value)


def _colour(state: str) -> Text:
    style = {"success": "green", "failed": "red", "upstream_failed": "red", "skipped": "yellow"}.get(state, "")
    return Text(state or "waiting", style=style)
