"""The server between a script and a database of MLflow: what goes in by it comes out of the database."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import mlflow_server
from real_run import RealRun, close

from training.tracking.mlflow_client import connect


def test_what_a_script_logs_is_in_the_run_that_the_supervisor_opened(sqlite_uri: str, tmp_path: Path) -> None:
    """K39, in a database: the tracker and the script write to one run, each in its own way."""
    real = RealRun.of(sqlite_uri, tmp_path)
    tracker = real.tracker()
    run_id = tracker.open()
    assert run_id
    port = mlflow_server._find_free_port()
    command = [sys.executable, "-P", "-m", "training.tracking.relay", "127.0.0.1", str(port)]
    with subprocess.Popen(
        command, env={**os.environ, "MLFLOW_TRACKING_URI": sqlite_uri}, stdout=subprocess.PIPE, text=True
    ) as relay:
        try:
            assert relay.stdout is not None
            assert "is served" in relay.stdout.readline()
            client = connect(f"http://127.0.0.1:{port}")
            client.log_metric(run_id, "of_the_script", 0.5, step=3)
            client.log_text(run_id, "hello", "notes/own.txt")
            client.set_terminated(run_id, "FAILED")
        finally:
            relay.terminate()
        assert relay.wait(timeout=10) != 0
    close(tracker)

    assert real.points("of_the_script") == [(3, 0.5)]
    assert [entry.path for entry in real.client.list_artifacts(run_id, "notes")] == ["notes/own.txt"]
    assert real.read().info.status == "FINISHED"  # the tracker has the last word
