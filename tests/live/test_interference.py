"""A person marks and clears a task, and Airflow's API server stands still."""

from __future__ import annotations

import os
import signal
import time

import pytest
from site_of_tests import HEARTBEAT_TIMEOUT_S, STEPS, LiveRun, Site, wait_until

from training.run.job import JobState

pytestmark = [pytest.mark.live, pytest.mark.timeout(280)]


@pytest.fixture(scope="module")
def marked(site: Site) -> LiveRun:
    """A run whose train task was marked as failed in mid-training."""
    run = site.trigger("lone", "marked_failed")
    run.wait_for_step(5)
    run.mark("train", "failed")
    return run


def test_a_failed_mark_ends_the_gang(marked: LiveRun) -> None:
    """K16, K43, K55."""
    wait_until(lambda: marked.find_processes() == [], "the gang is gone", limit_s=20)
    assert marked.wait_for_end() == "failed"
    assert marked.read_task("teardown_cluster").state == "success"
    assert marked.result.state is JobState.CANCELLED
    assert [status for _, status in marked.mlflow] == ["KILLED"]


def test_a_cleared_failure_resumes_and_an_api_server_that_is_away_costs_no_training(marked: LiveRun) -> None:
    """K35, K41, K51: the server stands still for longer than a heartbeat may be late: Airflow takes the task for dead.

    As if it were away for 3 minutes under our airflow.cfg; for 40 s, no heartbeat would be late.
    """
    run = marked
    [(mlflow_run, _)] = run.mlflow
    run.clear("train")
    run.wait_for_step(5, attempt=2)
    server = run.site.services.pids["airflow-api-server"]
    os.killpg(server, signal.SIGSTOP)
    try:
        time.sleep(1.5 * HEARTBEAT_TIMEOUT_S)
    finally:
        os.killpg(server, signal.SIGCONT)
    run.go()
    assert run.wait_for_end() == "success"
    assert f"going on after step 4 of {STEPS}" in run.job.merged_log.read_text()
    assert run.read_steps()[-1] == STEPS
    assert run.mlflow == [(mlflow_run, "FINISHED")]
