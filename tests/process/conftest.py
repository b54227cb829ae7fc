"""Real supervisors and real process trees; each test is proven to leave none of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes.jobs import Job

from training.run.folder import RunFolder
from training.run.follow import stop
from training.run.sweep import sweep


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    made = Job(RunFolder.of(f"run-{tmp_path.name}", tmp_path).job("train"))
    yield made
    stop(made.folder, "the test is over", wait_s=10)
    left = made.marked()
    sweep(made.folder.job_id, job_dir=made.folder.path)
    assert left == [], "processes were left behind"
