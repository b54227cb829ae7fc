"""The temporary folder of a job: short, private, found again by whoever cleans up, never mistaken for another's."""

from __future__ import annotations

import stat
import tempfile
from pathlib import Path

import pytest
from fakes.stepping import LIMITS, World, ready

from training import settings
from training.errors import LaunchError
from training.run.folder import RunFolder
from training.run.job import JobState
from training.run.scratch import Scratch, ScratchRef

#: What Python's multiprocessing puts in it, and the longest address of a Unix socket, less its last zero: unix(7).
LISTENER = "/pymp-abcdefgh/listener-abcdefgh"
LONGEST = 107


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The system's temporary folder."""
    path = tmp_path / "tmp"
    path.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(path))
    return path


@pytest.fixture
def scratch(tmp_path: Path) -> Scratch:
    return Scratch(RunFolder.of("run", tmp_path / "home").job("train"))


def test_it_is_private_and_lies_in_the_temporary_folder(temporary: Path, scratch: Scratch) -> None:
    path = scratch.make()
    assert path == temporary / scratch.name
    assert stat.S_IMODE(path.stat().st_mode) == 0o700


def test_a_socket_in_it_has_an_address_that_the_kernel_takes(scratch: Scratch) -> None:
    assert len(f"/var/tmp/{scratch.name}{LISTENER}") < LONGEST - 30, "there is room for a TMPDIR of the user's"


def test_each_job_of_each_home_has_its_own(tmp_path: Path) -> None:
    runs = [RunFolder.of(run, tmp_path / home) for home in ("a", "b") for run in ("r", "s")]
    assert len({Scratch(run.job(job)).name for run in runs for job in ("train", "evaluate")}) == 8


def test_every_attempt_gets_an_empty_one(temporary: Path, scratch: Scratch) -> None:
    (scratch.make() / "left").write_text("by the attempt before")
    assert list(scratch.make().iterdir()) == []


def test_it_is_found_by_a_process_with_another_temporary_folder(
    temporary: Path, scratch: Scratch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """K16: such as the next try on Airflow, or `ganger stop` in a shell."""
    (scratch.make() / "left").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert Scratch(scratch.job).remove() == ""
    assert list(temporary.iterdir()) == []


def test_nothing_there_is_no_problem(temporary: Path, scratch: Scratch) -> None:
    assert scratch.remove() == ""
    scratch.make()
    assert (scratch.remove(), scratch.remove()) == ("", "")


@pytest.mark.parametrize("content", ["", "not JSON", '{"path": 3}'])
def test_a_record_that_cannot_be_read_removes_nothing(temporary: Path, scratch: Scratch, content: str) -> None:
    path = scratch.make()
    scratch.job.scratch.write_text(content)
    assert scratch.remove() == ""
    assert path.exists()


def test_no_other_folder_is_removed_whatever_the_record_says(scratch: Scratch, tmp_path: Path) -> None:
    other = tmp_path / "precious"
    other.mkdir()
    ScratchRef(path=str(other)).write(scratch.job.scratch)
    assert scratch.remove() == ""
    assert other.exists()


def test_a_link_of_that_name_is_refused_and_not_followed(temporary: Path, scratch: Scratch, tmp_path: Path) -> None:
    """Names in /tmp can be foreseen by others."""
    other = tmp_path / "precious"
    other.mkdir()
    (temporary / scratch.name).symlink_to(other)
    with pytest.raises(LaunchError, match=rf"{scratch.name}. Received: File exists. Free the name, or set TMPDIR"):
        scratch.make()
    assert scratch.remove() == ""
    assert other.exists()


def test_one_of_another_user_is_refused(temporary: Path, scratch: Scratch, monkeypatch: pytest.MonkeyPatch) -> None:
    scratch.make()
    monkeypatch.setattr("os.geteuid", lambda: 4_242_424)
    with pytest.raises(LaunchError, match="File exists"):
        scratch.make()


def test_ranks_get_it_and_it_is_gone_before_the_next_attempt(temporary: Path, tmp_path: Path) -> None:
    world = World(tmp_path / "world", has_scratch=True, limits=LIMITS.model_copy(update={"restarts": 1}))
    seen: list[list[str]] = []
    for attempt in range(2):
        world.tick_until(lambda wanted=attempt: len(world.launcher.gangs) == wanted + 1)  # type: ignore[misc]
        path = Path(world.gang.order.env[settings.TMPDIR])
        seen.append([entry.name for entry in path.iterdir()])
        (path / "left").touch()
        world.gang.crash(0, -9)
        world.tick_until(lambda: world.gang.closed)
        assert list(temporary.iterdir()) == []
    assert seen == [[], []]


def test_a_gang_that_cannot_have_one_is_tried_again(temporary: Path, tmp_path: Path) -> None:
    world = World(tmp_path / "world", has_scratch=True, limits=LIMITS.model_copy(update={"restarts": 1}))
    temporary.rmdir()
    world.tick()
    assert "the ranks must get a temporary folder of their own" in world.merged
    temporary.mkdir()
    world.tick_until(lambda: bool(world.launcher.gangs))
    for rank in world.gang.ranks:
        world.gang.tell(ready(rank))
        world.gang.end(rank)
    assert world.run_to_end().state is JobState.SUCCEEDED
    assert list(temporary.iterdir()) == []
