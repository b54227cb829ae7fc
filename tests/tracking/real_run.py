"""A run folder whose tracker talks to real MLflow, and what MLflow has of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from training.plan.job import TrackingPlan
from training.run.event import Epoch, Model, Result, Step
from training.run.folder import RunFolder
from training.run.job import FailureHeadline, JobResult, JobState, TrackingRef
from training.run.tracker_api import TrackingReport
from training.tracking.mlflow_client import connect
from training.tracking.writer import JobTracker, TrackerLimits, open_tracker

LIMITS = TrackerLimits(open_s=60.0, flush_s=60.0, batch_s=0.1)


@dataclass(frozen=True, kw_only=True)
class RealRun:
    run: RunFolder
    plan: TrackingPlan

    @classmethod
    def of(cls, uri: str, tmp_path: Path, name: str = "") -> RealRun:
        name = name or tmp_path.name
        plan = TrackingPlan(tracking_uri=uri, experiment=name, run_name=name, params={"train.epochs": "3"})
        return cls(run=RunFolder.of(name, tmp_path), plan=plan)

    @property
    def client(self) -> Any:
        return connect(self.plan.tracking_uri)

    @property
    def ref(self) -> TrackingRef:
        ref = TrackingRef.read(self.run.tracking)
        assert ref is not None
        return ref

    def tracker(self, job: str = "train", limits: TrackerLimits = LIMITS, **changes: object) -> JobTracker:
        return open_tracker(self.plan.model_copy(update=changes), self.run.job(job), self.run, limits=limits)

    def read(self) -> Any:
        return self.client.get_run(self.ref.run_id)

    def points(self, name: str) -> list[tuple[int, float]]:
        """Step and value of a metric, in the order in which they happened."""
        history = self.client.get_metric_history(self.ref.run_id, name)
        return [(point.step, point.value) for point in sorted(history, key=lambda point: point.timestamp)]

    def runs(self) -> list[Any]:
        """All runs of the experiment."""
        return list(self.client.search_runs([self.ref.experiment_id]))


def step(number: int, loss: float = 0.5) -> Step:
    return Step(rank=0, step=number, epoch=1, metrics={"loss": loss}, time=1000.0 + number)


def epoch(number: int, steps: int = 5) -> Epoch:
    values = {"loss": 1 / number, "val_loss": 2 / number}
    return Epoch(rank=0, epoch=number, epochs=5, step=number * steps, metrics=values, seconds=1.0, time=2000.0 + number)


def saved(path: Path) -> Model:
    return Model(rank=0, path=str(path))


def evaluated(accuracy: float) -> Result:
    return Result(rank=0, values={"metrics": {"accuracy": accuracy}})


def close(tracker: JobTracker, state: JobState = JobState.SUCCEEDED, message: str = "") -> TrackingReport:
    failure = FailureHeadline(kind="WorkerError", name="rank 1", message=message) if message else None
    return tracker.close(state, JobResult(state=state, started_at=0.0, ended_at=1.0, failure=failure))


def abandon(tracker: JobTracker) -> None:
    """End the sending thread as a killed process would: without a last word."""
    tracker._stopped = True
    tracker._wake.set()
    assert tracker._thread is not None
    tracker._thread.join()
    tracker._spool.close()
