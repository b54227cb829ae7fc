"""Two runs of one DAG, triggered in the same second under a real Airflow; each loses something in mid-training.

The first to train loses its task (SIGKILL of the process and of its runner), the other one its supervisor. Then the
first one is cleared. Where the machine has slots for one gang only, the runs train one after the other. Beside them,
since it takes nothing but time, a run whose time limit passes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import psutil
import pytest
from site_of_tests import STEPS, LiveRun, Site, wait_until

from training.run.job import JobState

pytestmark = [pytest.mark.live, pytest.mark.timeout(280)]

#: A gang of dead ranks may not be seen for longer.
ORPHANS_S = 5.0
TOLERANCE = 1e-5


@dataclass(frozen=True)
class Twins:
    """Both runs, when they are over.

    Attributes:
        joined: Its task was killed; nobody touched its gang.
        resumed: Its supervisor was killed.
        ranks_left: Processes of that gang that were alive `ORPHANS_S` later.
    """

    joined: LiveRun
    resumed: LiveRun
    ranks_left: list[psutil.Process]


@pytest.fixture(scope="module")
def limited(site: Site) -> LiveRun:
    return site.trigger("limited", "timed_out")


@pytest.fixture(scope="module")
def twins(site: Site, limited: LiveRun) -> Twins:
    runs = [site.trigger("whole", f"twin_{number}") for number in (1, 2)]
    wait_until(lambda: any(run.read_step() >= 5 for run in runs), "one of the runs trains", describe=runs[0].describe)
    joined = runs[0] if runs[0].read_step() >= 5 else runs[1]
    resumed = runs[1] if joined is runs[0] else runs[0]
    for process in joined.find_task_processes():
        process.kill()
    wait_until(lambda: joined.has_joined(2), "the second try joins", describe=joined.describe)
    joined.go()
    resumed.wait_for_step(5)
    ranks = resumed.supervisor.children(recursive=True)
    assert len(ranks) >= 2
    resumed.supervisor.kill()
    _, left = psutil.wait_procs(ranks, timeout=ORPHANS_S)
    resumed.go()
    for run in runs:
        run.wait_for_end()
    return Twins(joined, resumed, left)


def test_both_succeed_and_keep_apart(twins: Twins) -> None:
    """K50."""
    runs = (twins.joined, twins.resumed)
    assert [run.read_state() for run in runs] == ["success", "success"]
    assert len({run.folder.path for run in runs}) == 2
    assert [status for run in runs for _, status in run.mlflow] == ["FINISHED", "FINISHED"]
    assert len({run_id for run in runs for run_id, _ in run.mlflow}) == 2
    ports = [set(re.findall(r"port \S+ (\d+)", run.job.merged_log.read_text())) for run in runs]
    assert all(ports)
    assert ports[0].isdisjoint(ports[1])


def test_a_killed_task_is_followed_by_one_that_joins_the_gang(twins: Twins) -> None:
    """K16, K51."""
    run = twins.joined
    assert "train is running already: following it, at step 5" in run.read_log(2)
    assert "Reconnecting to existing job" in run.read_log(2)
    assert run.read_steps() == list(range(1, STEPS + 1))
    assert run.result.attempts == 1
    assert run.job.merged_log.read_text().count("attempt 1 of") == 1


def test_a_killed_supervisor_takes_its_ranks_along_and_the_retry_resumes(twins: Twins) -> None:
    """K16, K35, K41, K43."""
    run = twins.resumed
    assert twins.ranks_left == []
    assert "died without a result" in run.read_log(1)
    assert "Retry policy decision" in run.read_log(1)
    assert f"going on after step 4 of {STEPS}" in run.read_log(2)
    assert run.read_steps() == [1, 2, 3, 4, 5, *range(5, STEPS + 1)]
    expected = twins.joined.read_weights()
    found = run.read_weights()
    assert found.keys() == expected.keys()
    assert max(np.abs(found[name] - value).max() for name, value in expected.items()) <= TOLERANCE


def test_a_time_limit_ends_the_gang(limited: LiveRun) -> None:
    """K17, K43, K55."""
    assert limited.wait_for_end() == "failed"
    assert limited.read_task("teardown_cluster").state == "success"
    assert limited.result.state is JobState.CANCELLED
    assert [status for _, status in limited.mlflow] == ["KILLED"]


def test_a_cleared_success_trains_anew_in_a_new_mlflow_run(twins: Twins) -> None:
    """K36, K41, K43: and what comes after it takes the new model."""
    run = twins.joined
    [(old, _)] = run.mlflow
    before = run.result
    version = run.read_xcom("register_model")["version"]
    tries = {name: run.read_task(name).try_number for name in ("train", "evaluate", "register_model")}
    run.clear("train")
    assert run.wait_for_end() == "success"
    log = run.read_log(run.read_task().try_number)
    assert "has succeeded before: its model and logs are kept in" in log
    assert "going on after step" not in log
    assert run.read_steps() == list(range(1, STEPS + 1))
    assert run.result.started_at > before.ended_at
    assert run.result.values["weights_sha256"] == before.values["weights_sha256"]
    assert all(run.read_task(name).try_number > number for name, number in tries.items())
    assert dict(run.mlflow)[old] == "FINISHED"
    [new] = [each for each in run.site.find_mlflow_runs(run.folder.run_id) if each["run_id"] != old]
    assert (new["status"], new["tags"]["ganger.previous_mlflow_run"]) == ("FINISHED", old)
    assert run.read_xcom("register_model")["version"] != version
    assert run.read_xcom("train")["mlflow_run_id"] == new["run_id"]
    [kept] = run.folder.earlier()
    assert kept.model.is_dir()
