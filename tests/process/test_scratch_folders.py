"""What killed ranks leave in their temporary folder goes with the job, also when its supervisor was killed."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from fakes.jobs import Job, is_gone, wait_until
from fakes.toys import ENDS, toy

from training import settings
from training.run.folder import RunFolder
from training.run.follow import stop
from training.run.job import JobState
from training.spec.loader import pipeline_from_mapping
from training.steps import StepContext, teardown_cluster

#: Leaves a file as AutoGraph does, in the folder that Python finds by itself.
_LITTERS = """
import tempfile
handle, path = tempfile.mkstemp(prefix='__autograph_generated_file')
os.mkdir(os.path.join(tempfile.gettempdir(), f'of-rank-{rank}'))
ready()
say(f'wrote {path}')
"""
LITTERS = toy(f"{_LITTERS}\nwhile True: time.sleep(60)")
LITTERS_AND_IS_KILLED = toy(f"{_LITTERS}\nos.kill(os.getpid(), signal.SIGKILL)")


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What `TMPDIR` says: only the jobs of this test put something there."""
    path = tmp_path / "tmp"
    path.mkdir()
    monkeypatch.setenv(settings.TMPDIR, str(path))
    return path


def _start_and_kill_the_supervisor(job: Job, temporary: Path) -> None:
    job.start(job.plan(LITTERS, LITTERS))
    job.wait_for_text(r"\[rank 0\] wrote (\S+)")
    job.wait_for_text(r"\[rank 1\] wrote (\S+)")
    pids = [rank.pid for rank in job.status.ranks if rank.pid is not None]
    supervisor = job.supervisor
    supervisor.send_signal(signal.SIGKILL)
    wait_until(lambda: all(map(is_gone, [supervisor.pid, *pids])))
    [folder] = temporary.iterdir()
    assert len(list(folder.iterdir())) == 4, "nobody has cleaned up yet"


def test_killed_ranks_leave_nothing_there(job: Job, temporary: Path) -> None:
    """K16: neither the first attempt nor its restart; the ranks share a folder that is theirs alone."""
    result = job.run(job.plan(LITTERS, LITTERS_AND_IS_KILLED, limits={"restarts": 1}))
    assert (result.state, result.attempts) == (JobState.FAILED, 2)
    folder = Path(job.wait_for_text(r"\[rank 1\] wrote (\S+)")[1]).parent
    assert folder.parent == temporary
    assert list(temporary.iterdir()) == []


def test_ranks_that_end_well_leave_nothing_there(job: Job, temporary: Path) -> None:
    result = job.run(job.plan(toy(_LITTERS)))
    assert (result.state, list(temporary.iterdir())) == (JobState.SUCCEEDED, [])


def test_stopped_ranks_leave_nothing_there(job: Job, temporary: Path) -> None:
    job.start(job.plan(LITTERS))
    job.wait_for_text(r"wrote (\S+)")
    stop(job.folder, "enough")
    assert list(temporary.iterdir()) == []


def test_the_follower_of_a_killed_supervisor_cleans_up(job: Job, temporary: Path) -> None:
    """K16."""
    _start_and_kill_the_supervisor(job, temporary)
    assert job.follow().state is JobState.FAILED
    assert list(temporary.iterdir()) == []


def test_stopping_a_job_whose_supervisor_was_killed_cleans_up(job: Job, temporary: Path) -> None:
    """K16."""
    _start_and_kill_the_supervisor(job, temporary)
    stop(job.folder, "ganger stop")
    assert list(temporary.iterdir()) == []


def test_the_next_start_cleans_up_wherever_its_own_folder_will_be(
    job: Job, temporary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """K16, K19."""
    _start_and_kill_the_supervisor(job, temporary)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.setenv(settings.TMPDIR, str(elsewhere))
    assert job.run(job.plan(ENDS)).state is JobState.SUCCEEDED
    assert [*temporary.iterdir(), *elsewhere.iterdir()] == []


def test_the_teardown_cleans_up_after_a_killed_supervisor(job: Job, temporary: Path) -> None:
    """K16, K55."""
    _start_and_kill_the_supervisor(job, temporary)
    spec = {"name": "a", "data": {"source": "digits"}, "model": {"entrypoint": "m"}, "train": {"engine": "tensorflow"}}
    said: list[str] = []
    ctx = StepContext(
        file=pipeline_from_mapping(spec, Path.cwd()), run=RunFolder(job.folder.path.parent.parent), log=said.append
    )
    assert teardown_cluster(ctx)["stopped"] == ["train"]
    assert list(temporary.iterdir()) == []
    assert teardown_cluster(ctx)["stopped"] == [], "it can be repeated"


def test_ranks_without_a_wish_of_the_users_use_the_systems(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (settings.TMPDIR, "TEMP", "TMP"):
        monkeypatch.delenv(name, raising=False)
    job.run(job.plan(toy(f"{_LITTERS}say(oct(os.stat(tempfile.gettempdir()).st_mode))")))
    folder = Path(job.wait_for_text(r"wrote (\S+)")[1]).parent
    assert (folder.parent, folder.exists()) == (Path("/tmp"), False)
    assert "0o40700" in job.merged
