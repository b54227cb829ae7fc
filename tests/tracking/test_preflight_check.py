from __future__ import annotations

import socket
import time
from pathlib import Path

import pytest
from mlflow_server import MlflowServer
from real_run import RealRun, close, saved

from training.errors import PreflightError, TrackingError
from training.tracking.preflight import check_reachable, check_tracking


def test_a_local_store_keeps_artifacts_beside_the_database(tmp_path: Path, model: Path, nowhere: Path) -> None:
    """K44: not in `mlruns` of whatever the working folder is."""
    real = RealRun.of(f"sqlite:///{tmp_path / 'new' / 'mlflow.db'}", tmp_path)
    tracker = real.tracker()
    tracker.open()
    tracker.handle(saved(model))
    assert close(tracker).closed
    assert list((tmp_path / "new" / "mlartifacts").rglob("doubles.py"))
    assert list(nowhere.iterdir()) == []


@pytest.mark.parametrize("first", ["server", "store"])
def test_an_experiment_can_be_used_with_and_without_the_server(server: MlflowServer, first: str) -> None:
    """As when `ganger run` follows `make demo` and `make stop`, or comes before them."""
    addresses = [server.uri, server.store_uri]
    for address in addresses if first == "server" else reversed(addresses):
        check_tracking(address, f"first used by the {first}")


def test_an_absent_server_is_named_in_seconds() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    began = time.monotonic()
    with pytest.raises(PreflightError, match=r"must answer within 5 s.*Connection refused.*ganger serve") as caught:
        check_reachable(f"http://ada:s3cr3t-XYZ@127.0.0.1:{port}")
    assert time.monotonic() - began < 5
    assert "s3cr3t-XYZ" not in str(caught.value)  # K18


def test_a_silent_server_is_named_in_seconds() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        with pytest.raises(PreflightError, match=r"no answer in time|timed out"):
            check_reachable(f"http://127.0.0.1:{silent.getsockname()[1]}")


def test_a_database_that_is_none_is_named(tmp_path: Path) -> None:
    (tmp_path / "mlflow.db").write_text("this is no database, and long enough to be seen as none at all" * 20)
    with pytest.raises(TrackingError, match=r"mlflow\.db"):
        check_tracking(f"sqlite:///{tmp_path / 'mlflow.db'}", "digits")
