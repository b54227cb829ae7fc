from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository
from real_run import RealRun, close, step

from training.errors import PreflightError
from training.tracking.mlflow_store import MlflowStore
from training.tracking.preflight import check_tracking, probe_artifacts
from training.tracking.store import StoreRefusedError

#: Imports MLflow once, then forks: what races is the making of tables and experiment, not six imports.
_RACE = """
import json, multiprocessing, sys
import mlflow.tracking.client
from training.tracking.mlflow_store import MlflowStore

def open_one(barrier, results):
    barrier.wait()
    try:
        store = MlflowStore(sys.argv[1])
        experiment = store.open_experiment("r\u00e4ce \U0001f600")
        results.put([experiment, store.create_run(experiment, "r", {}, 1)])
    except Exception as error:
        results.put([repr(error), ""])

fork = multiprocessing.get_context("fork")
barrier, results = fork.Barrier(6), fork.Queue()
processes = [fork.Process(target=open_one, args=(barrier, results)) for _ in range(6)]
for process in processes:
    process.start()
print(json.dumps([results.get(timeout=90) for _ in processes]))
for process in processes:
    process.join()
"""


def test_six_processes_make_a_new_store_and_one_experiment(tmp_path: Path) -> None:
    """K45."""
    command = [sys.executable, "-W", "ignore", "-c", _RACE, f"sqlite:///{tmp_path}/new.db"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110, check=True)
    results = json.loads(done.stdout.splitlines()[-1])
    assert len({experiment for experiment, _ in results}) == 1, results
    assert len({run_id for _, run_id in results if run_id}) == 6, results


def test_a_deleted_experiment_says_the_ways_out(real: RealRun) -> None:
    """K45."""
    store = MlflowStore(real.plan.tracking_uri)
    experiment_id = store.open_experiment(real.plan.experiment)
    real.client.delete_experiment(experiment_id)
    with pytest.raises(StoreRefusedError, match=f"restore --experiment-id {experiment_id}"):
        store.open_experiment(real.plan.experiment)
    with pytest.raises(PreflightError, match="is in the trash"):
        check_tracking(real.plan.tracking_uri, real.plan.experiment)
    tracker = real.tracker()
    assert tracker.open() is None
    tracker.handle(step(1))
    real.client.restore_experiment(experiment_id)
    assert close(tracker).closed
    assert real.points("step/loss") == [(1, 0.5)]


@pytest.mark.parametrize("name", ["two words", "größe 😀", "a/b:c", "n" * 480])
def test_experiments_of_any_name_are_opened_twice(sqlite_uri: str, name: str) -> None:
    """K45."""
    assert MlflowStore(sqlite_uri).open_experiment(name) == MlflowStore(sqlite_uri).open_experiment(name)


def test_an_experiment_name_that_is_too_long_is_refused_before_the_training(sqlite_uri: str) -> None:
    """K45."""
    with pytest.raises(PreflightError, match="500"):
        check_tracking(sqlite_uri, "n" * 501)


def test_params_of_any_length_and_number_arrive(real: RealRun) -> None:
    """K40."""
    lengths = {f"{letter}{length}": letter * length for letter in "x😀" for length in (250, 501, 6000, 6001)}
    many = {f"p{number}": str(number) for number in range(101)}
    config = {"config": "c" * 2_000_000}
    tracker = real.tracker(params={**{f"len/{k[1:]}/{ord(k[0])}": v for k, v in lengths.items()}, **many, **config})
    tracker.open()
    for number in range(1, 1002):
        tracker.handle(step(number))
    report = close(tracker)
    assert (report.closed, report.notes) == (True, ())
    params = real.read().data.params
    assert {name: params[name] for name in many} == many
    for text in lengths.values():
        value = params[f"len/{len(text)}/{ord(text[0])}"]
        assert value == text if len(text) <= 6000 else "shortened from 6001 characters" in value
    assert "artifact params/config.txt" in params["config"]
    artifacts = {found.path for found in real.client.list_artifacts(real.ref.run_id, "params")}
    assert {"params/config.txt", "params/len_6001_120.txt"} <= artifacts
    assert len(real.points("step/loss")) == 1001


@pytest.mark.parametrize("name", ["preflight", "größe 😀 100%/b"])
def test_a_store_that_takes_everything_passes_preflight_and_keeps_no_probe(uri: str, name: str) -> None:
    """K44."""
    check_tracking(uri, name)
    check_tracking(uri, name)
    store = MlflowStore(uri)
    location = store.artifact_location(store.open_experiment(name))
    assert get_artifact_repository(location, tracking_uri=uri).list_artifacts() == []


def test_artifacts_that_cannot_be_written_are_told_before_the_training(tmp_path: Path, sqlite_uri: str) -> None:
    """K44: names the artifact address, not only a path."""
    (tmp_path / "file").write_text("where a folder should be")
    location = (tmp_path / "file" / "artifacts").as_uri()
    with pytest.raises(PreflightError, match=f"must be writable at {location}"):
        probe_artifacts(location, sqlite_uri)


def test_a_store_that_is_no_store_is_told_before_the_training(tmp_path: Path) -> None:
    """K44."""
    with pytest.raises(PreflightError, match="must answer within"):
        check_tracking("http://127.0.0.1:9", "digits")
