"""Names of every file of a run, and how they are written: to a temporary name, flushed, then renamed.

A run is one pass through a pipeline. Each of its tasks that starts processes is a job with a folder of its own. Ids are
functions of their origin (DAG, run, task, map index), so that a retry finds what the first try left.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from pydantic import BaseModel

from training import settings

#: Folder, in a run folder, of trainings that gave way to another one.
EARLIER = "earlier"


def write_atomic(path: Path, text: str, *, durable: bool = True) -> None:
    """Write `text` so that a reader sees the old file or the whole new one, never a part.

    Args:
        path: The file; its folder is made.
        text: What it shall hold.
        durable: Survive a loss of power too. That costs a flush to the disk, too much for what changes every second.

    Raises:
        OSError: The disk is full or the folder cannot be written; the old file is intact and no temporary one is left.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            if durable:
                os.fsync(stream.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def run_id_of(dag_id: str, dag_run_id: str) -> str:
    """Return the id of the run that belongs to a DAG run: readable, safe as a folder name, unique.

    >>> run_id_of("digits", "manual__2026-12-02T01:50:44+00:00")
    'digits-20261202T015044-8dac1f'
    """
    digest = hashlib.sha256(f"{dag_id}\0{dag_run_id}".encode()).hexdigest()[:6]
    moment = re.search(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)", dag_run_id)
    middle = "{}{}{}T{}{}{}-".format(*moment.groups()) if moment else ""
    return f"{re.sub(r'[^A-Za-z0-9_.-]', '_', dag_id)}-{middle}{digest}"


class FileModel(BaseModel):
    """Base of the models that are files of a run."""

    @classmethod
    def read(cls, path: Path) -> Self | None:
        """Return what the file at `path` holds, or None where there is no file."""
        try:
            return cls.model_validate_json(path.read_bytes())
        except FileNotFoundError:
            return None

    def write(self, path: Path, *, durable: bool = True) -> None:
        """Write the model to `path`, whole or not at all."""
        write_atomic(path, self.model_dump_json(indent=2, by_alias=True) + "\n", durable=durable)


@dataclass(frozen=True, slots=True)
class JobFolder:
    """The files of one job."""

    path: Path

    @property
    def job_id(self) -> str:
        """`run_id/job`, which is also the mark of the job's processes."""
        return f"{self.path.parent.parent.name}/{self.path.name}"

    @property
    def job(self) -> Path:
        """The `JobPlan`: what to start."""
        return self.path / "job.json"

    @property
    def supervisor(self) -> Path:
        """Pid and start time of the supervisor: `SupervisorRef`."""
        return self.path / "supervisor.json"

    @property
    def lock(self) -> Path:
        """Locked (flock) by the supervisor as long as it lives."""
        return self.path / "supervisor.lock"

    @property
    def supervisor_log(self) -> Path:
        """What the supervisor itself printed."""
        return self.path / "supervisor.log"

    @property
    def status(self) -> Path:
        """The current `JobStatus`, renewed at every change."""
        return self.path / "status.json"

    @property
    def result(self) -> Path:
        """The `JobResult`; it exists when, and only when, the job is over."""
        return self.path / "result.json"

    def archived_result(self, number: int) -> Path:
        """The `JobResult` of an earlier try, numbered from 1."""
        return self.path / f"result-{number}.json"

    @property
    def slots(self) -> Path:
        """The slots of its machine that the job holds: a `SlotRow`."""
        return self.path / "slots.json"

    @property
    def lease(self) -> Path:
        """Touched by whoever follows the job; too old a lease ends the job."""
        return self.path / "lease"

    @property
    def follower(self) -> Path:
        """Number of the try that came last to follow the job; an older one has no say in its end any more."""
        return self.path / "follower"

    @property
    def turn(self) -> Path:
        """Number of the last turn that was called, where processes begin one after the other (`training.run.turn`)."""
        return self.path / "turn"

    @property
    def cancel(self) -> Path:
        """Exists when somebody asked for the end; its text says who."""
        return self.path / "cancel"

    @property
    def events(self) -> Path:
        """All events of all ranks, one JSON object a line."""
        return self.path / "events.jsonl"

    @property
    def merged_log(self) -> Path:
        """The whole lines of all ranks, each with its rank in front."""
        return self.path / "merged.log"

    @property
    def timeline(self) -> Path:
        """Picture (SVG) of a step of a pipeline: which stage worked on which micro-batch when."""
        return self.path / "timeline.svg"

    @property
    def spool(self) -> Path:
        """Tracking calls that the server has not taken yet."""
        return self.path / "tracking"

    @property
    def scratch(self) -> Path:
        """Where the temporary folder of the ranks is: a `ScratchRef`."""
        return self.path / "scratch.json"

    def rank_log(self, rank: int) -> Path:
        """The unchanged output of one rank over all attempts."""
        return self.path / "logs" / f"rank-{rank}.log"


@dataclass(frozen=True, slots=True)
class RunFolder:
    """The files of one run."""

    path: Path

    @classmethod
    def of(cls, run_id: str, home: Path | None = None) -> RunFolder:
        """Return the folder of `run_id` in the home folder; it need not exist."""
        return cls((home or settings.read_home()) / "runs" / run_id)

    @property
    def run_id(self) -> str:
        """Id of the run, which is the folder's name."""
        return self.path.name

    @property
    def home(self) -> Path:
        """The home folder that the run is in."""
        return self.path.parent.parent

    @property
    def record(self) -> Path:
        """Where the run came from, its spec included: `RunRecord`."""
        return self.path / "run.json"

    @property
    def plan(self) -> Path:
        """The `RunPlan`."""
        return self.path / "plan.json"

    @property
    def dataset(self) -> Path:
        """Where the prepared dataset is: a `DatasetRef`."""
        return self.path / "dataset.json"

    @property
    def allocation(self) -> Path:
        """The hosts that `provision_cluster` chose, with the number of ranks of each: an `Allocation`."""
        return self.path / "allocation.json"

    @property
    def tracking(self) -> Path:
        """The MLflow run: a `TrackingRef`."""
        return self.path / "mlflow.json"

    @property
    def model(self) -> Path:
        """The trained model, a folder in MLflow's format."""
        return self.path / "model"

    @property
    def initial_model(self) -> Path:
        """The model of `model.initialize_from`, fetched."""
        return self.path / "initial_model"

    @property
    def checkpoints(self) -> Path:
        """Folder of the checkpoints."""
        return self.path / "checkpoints"

    def job(self, name: str, map_index: int = -1) -> JobFolder:
        """Return the folder of the job `name`, one per mapped task instance."""
        return JobFolder(self.path / "jobs" / (name if map_index < 0 else f"{name}.{map_index}"))

    def set_aside(self, number: int) -> RunFolder:
        """Return where training `number` of this run (from 1) is kept, once another one has taken its place."""
        return RunFolder(self.path / EARLIER / str(number) / self.run_id)

    @property
    def is_set_aside(self) -> bool:
        """Whether this is what `set_aside` returned for some run."""
        return self.path.parent.parent.name == EARLIER and self.path.parent.name.isdigit()

    def earlier(self) -> list[RunFolder]:
        """Return the trainings of the run that were set aside before this one, the newest first."""
        folder = self.path.parent.parent if self.is_set_aside else self.path / EARLIER
        numbers = sorted((int(path.name) for path in folder.glob("*") if path.name.isdigit()), reverse=True)
        before = int(self.path.parent.name) if self.is_set_aside else len(numbers) + 1
        return [RunFolder(folder / str(number) / self.run_id) for number in numbers if number < before]

    def jobs(self) -> Iterator[JobFolder]:
        """Yield the folders of all jobs that were started, by name."""
        for path in sorted((self.path / "jobs").glob("*")):
            yield JobFolder(path)
