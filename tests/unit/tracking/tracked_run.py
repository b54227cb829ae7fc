"""A run folder with a tracker that talks to a scripted store."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from scripted_store import ScriptedStore

from training.plan.job import TrackingPlan
from training.run.event import Epoch, Model, Step
from training.run.folder import JobFolder, RunFolder
from training.run.job import FailureHeadline, JobResult, JobState
from training.run.tracker_api import TrackingReport
from training.tracking.writer import JobTracker, TrackerLimits, open_tracker

QUICK = TrackerLimits(open_s=5.0, flush_s=5.0, upload_s=5.0, batch_s=0.01)

PLAN = TrackingPlan(
    tracking_uri="http://ada@host:5000", experiment="digits", run_name="digits-1", params={"train.epochs": "3"}
)


@dataclass
class TrackedRun:
    store: ScriptedStore
    run: RunFolder
    plan: TrackingPlan = PLAN

    def job(self, name: str = "train") -> JobFolder:
        return self.run.job(name)

    def tracker(self, name: str = "train", limits: TrackerLimits = QUICK, **changes: object) -> JobTracker:
        plan = self.plan.model_copy(update=changes)
        return open_tracker(plan, self.job(name), self.run, make_store=self.store.connect, limits=limits)


def tracked_run(tmp_path: Path) -> TrackedRun:
    return TrackedRun(store=ScriptedStore(), run=RunFolder.of("digits-1", tmp_path))


def step(number: int, loss: float = 0.5, rank: int = 0) -> Step:
    return Step(rank=rank, step=number, epoch=1, metrics={"loss": loss}, time=1000.0 + number)


def epoch(number: int, *, steps: int = 5) -> Epoch:
    values = {"loss": 1 / number, "val_loss": 2 / number}
    return Epoch(rank=0, epoch=number, epochs=5, step=number * steps, metrics=values, seconds=1.0, time=2000.0 + number)


def model(path: str = "/run/model") -> Model:
    return Model(rank=0, path=path)


def close(tracker: JobTracker, state: JobState = JobState.SUCCEEDED, message: str = "") -> TrackingReport:
    failure = FailureHeadline(kind="WorkerError", name="rank 1 (worker)", message=message) if message else None
    return tracker.close(state, JobResult(state=state, started_at=0.0, ended_at=1.0, failure=failure))
