from __future__ import annotations

from pathlib import Path

import pytest
from scripted_store import ScriptedStore
from tracked_run import TrackedRun, tracked_run

from training.run.job import TrackingRef
from training.tracking.attach import attach_run


@pytest.fixture
def tracked(tmp_path: Path) -> TrackedRun:
    return tracked_run(tmp_path)


def attach(
    tracked: TrackedRun, *, owner: bool = True, tags: dict[str, str] | None = None, **changes: object
) -> list[str]:
    plan = tracked.plan.model_copy(update=changes)
    return attach_run(tracked.store, plan, tracked.run, owner=owner, start_ms=1, tags=tags or {})


def ref(tracked: TrackedRun) -> TrackingRef:
    found = TrackingRef.read(tracked.run.tracking)
    assert found is not None
    return found


def test_tries_share_one_run(tracked: TrackedRun) -> None:
    """K39, K41."""
    attach(tracked, tags={"ganger.host": "a"})
    tracked.store.only_run.status = "FAILED"
    assert attach(tracked, tags={"ganger.host": "b"}) == []
    assert tracked.store.only_run.status == "RUNNING"
    assert tracked.store.only_run.tags["ganger.host"] == "b"


def test_a_run_whose_id_was_never_written_down_is_found_again(tracked: TrackedRun) -> None:
    """K39: killed between the server's answer and the file."""
    attach(tracked)
    tracked.run.tracking.unlink()
    attach(tracked)
    assert len(tracked.store.runs) == 1


def test_params_that_changed_become_tags(tracked: TrackedRun) -> None:
    """K41: the retry succeeds, and the param stays what it was."""
    attach(tracked, params={"epochs": "3", "batch": "32"})
    notes = attach(tracked, params={"epochs": "4", "batch": "32", "new": "1"})
    run = tracked.store.only_run
    assert run.params == {"epochs": "3", "batch": "32", "new": "1"}
    assert run.tags["ganger.retried_param.epochs"] == "4"
    assert len(notes) == 1
    assert "'3'" in notes[0]
    assert "'4'" in notes[0]


@pytest.mark.parametrize("letter", ["x", "é", "😀"])
@pytest.mark.parametrize("length", [250, 501, 6000, 6001, 2_000_000])
def test_params_of_any_length_are_kept(tracked: TrackedRun, letter: str, length: int) -> None:
    """K40."""
    attach(tracked, params={"long/one": letter * length})
    run = tracked.store.only_run
    if length <= 6000:
        assert run.params["long/one"] == letter * length
        assert not run.texts
    else:
        assert len(run.params["long/one"]) == 6000
        assert f"shortened from {length} characters" in run.params["long/one"]
        assert run.texts == {"params/long_one.txt": letter * length}


def test_many_params_and_tags_are_split(tracked: TrackedRun) -> None:
    """K40: 101 params; four-byte characters that would make one request of 7 MB."""
    attach(tracked, params={f"p{n}": "😀" * 6000 for n in range(101)}, tags={f"t{n}": "x" for n in range(101)})
    run = tracked.store.only_run
    assert len(run.params) == 101
    assert {f"t{n}" for n in range(101)} <= set(run.tags)
    assert tracked.store.calls.count("log_params") > 10


def test_a_tag_of_any_length_is_kept_shorter(tracked: TrackedRun) -> None:
    """K40."""
    attach(tracked, tags={"mlflow.note.content": "n" * 9000})
    assert "shortened from 9000" in tracked.store.only_run.tags["mlflow.note.content"]


def test_a_deleted_run_is_continued_by_a_new_one_that_names_it(tracked: TrackedRun) -> None:
    """K41: opens a linked one by a stated rule."""
    attach(tracked)
    old = ref(tracked).run_id
    tracked.store.runs.clear()
    tracked.store.runs["other"] = tracked.store.runs.get("other") or _other_run()
    notes = attach(tracked)
    assert ref(tracked).run_id != old or len(tracked.store.runs) == 2
    assert tracked.store.runs[ref(tracked).run_id].tags["ganger.previous_mlflow_run"] == old
    assert len(notes) == 1


def _other_run() -> object:
    from scripted_store import ServerRun

    return ServerRun("1", "other")


def test_a_training_that_took_the_place_of_an_earlier_one_has_a_run_of_its_own(tracked: TrackedRun) -> None:
    """K41: the old run stays as it ended; a stated rule links the new one; and so on."""
    trained = []
    for number in (1, 2, 3):
        attach(tracked)
        tracked.store.runs[ref(tracked).run_id].status = "FINISHED"
        trained.append(ref(tracked).run_id)
        kept = tracked.run.set_aside(number).tracking
        kept.parent.mkdir(parents=True)
        tracked.run.tracking.rename(kept)
    assert len(set(trained)) == 3
    runs = [tracked.store.runs[run_id] for run_id in trained]
    assert [run.status for run in runs] == ["FINISHED"] * 3
    assert [run.tags.get("ganger.previous_mlflow_run") for run in runs] == [None, *trained[:2]]
    assert {run.tags["ganger.run_id"] for run in runs} == {"digits-1"}


def test_the_second_training_is_found_again_too(tracked: TrackedRun) -> None:
    """K39: killed between the server's answer and the file."""
    attach(tracked)
    kept = tracked.run.set_aside(1).tracking
    kept.parent.mkdir(parents=True)
    tracked.run.tracking.rename(kept)
    attach(tracked)
    second = ref(tracked).run_id
    tracked.run.tracking.unlink()
    attach(tracked)
    assert ref(tracked).run_id == second
    assert len(tracked.store.runs) == 2


def test_a_server_that_moved_is_found_at_its_new_address(tracked: TrackedRun) -> None:
    attach(tracked)
    attach(tracked, tracking_uri="http://ada:s3cr3t-XYZ@host:6000")
    assert len(tracked.store.runs) == 1
    assert ref(tracked).tracking_uri == "http://ada@host:6000"  # K18


def test_a_later_job_leaves_params_tags_and_status_alone(tracked: TrackedRun) -> None:
    """K43: `evaluate` adds to the run of the training."""
    attach(tracked)
    tracked.store.only_run.status = "FINISHED"
    calls = len(tracked.store.calls)
    attach(tracked, owner=False, tags={"task": "evaluate"}, params={"epochs": "9"})
    assert tracked.store.only_run.status == "FINISHED"
    assert "task" not in tracked.store.only_run.tags
    assert tracked.store.calls[calls:] == ["read_run"]


def test_the_store_of_the_tests_keeps_mlflow_s_rules() -> None:
    assert ScriptedStore().connect("x").open_experiment("a") == "1"
