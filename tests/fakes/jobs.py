"""Jobs with real supervisors, for process tests."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import psutil

from training.plan.job import JobPlan, LimitsPlan, ProcessPlan
from training.run.folder import JobFolder
from training.run.follow import follow, start_or_attach
from training.run.job import JobResult, JobStatus, SupervisorRef
from training.run.sweep import find_marked

WAIT_S = 20.0
LIMITS = LimitsPlan(
    start_timeout_s=15, stall_timeout_s=15, stop_grace_s=0.5, finish_grace_s=5, lease_s=30, timeout_s=60
)


@dataclass
class Job:
    """A job in a folder of the test."""

    folder: JobFolder
    said: list[str] = field(default_factory=list)

    def plan(self, *commands: tuple[str, ...], limits: dict[str, Any] | None = None, **fields: Any) -> JobPlan:
        return JobPlan(
            run_id=self.folder.path.parent.parent.name,
            name=self.folder.path.name,
            processes=tuple(ProcessPlan(rank=rank, argv=argv) for rank, argv in enumerate(commands)),
            limits=LIMITS.model_copy(update=limits or {}),
            **fields,
        )

    def start(self, plan: JobPlan) -> bool:
        return start_or_attach(self.folder, plan, on_line=self.said.append)

    def follow(self, **options: Any) -> JobResult:
        return follow(self.folder, poll_s=0.02, **options)

    def run(self, plan: JobPlan) -> JobResult:
        self.start(plan)
        return self.follow()

    @property
    def merged(self) -> str:
        return self.folder.merged_log.read_text() if self.folder.merged_log.exists() else ""

    @property
    def supervisor(self) -> psutil.Process:
        ref = SupervisorRef.read(self.folder.supervisor)
        assert ref is not None
        return psutil.Process(ref.pid)

    @property
    def status(self) -> JobStatus:
        status = JobStatus.read(self.folder.status)
        assert status is not None
        return status

    def marked(self) -> list[int]:
        """Pids of living processes that bear the job's mark."""
        return [process.pid for process in find_marked(self.folder.job_id, job_dir=self.folder.path)]

    def wait_for_text(self, pattern: str) -> re.Match[str]:
        wait_until(lambda: re.search(pattern, self.merged) is not None)
        found = re.search(pattern, self.merged)
        assert found is not None
        return found


def wait_until(done: Callable[[], bool], limit_s: float = WAIT_S) -> float:
    """Wait until `done`, and return how many seconds that took."""
    began = time.monotonic()
    while not done():
        assert time.monotonic() - began < limit_s, f"not done after {limit_s} s"
        time.sleep(0.01)
    return time.monotonic() - began


def is_gone(pid: int) -> bool:
    """Whether no process of this number lives; a zombie does not."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
