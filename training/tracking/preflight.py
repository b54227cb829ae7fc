"""Asks, before a training starts, whether the tracking server will take what the training is going to write (K44)."""

from __future__ import annotations

import contextlib
import os
import socket
import tempfile
import urllib.error
import urllib.request
import uuid
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from training.errors import PreflightError, TrackingError
from training.tracking.mask import mask_text, mask_uri, restore_uri, split_credentials
from training.tracking.mlflow_client import translated_errors
from training.tracking.store import StoreAwayError, StoreRefusedError

_TIMEOUT_S = 5.0


def check_tracking(uri: str, experiment: str) -> None:
    """Find that the server answers, that the experiment can be used, and that artifacts can be written and read.

    Makes the experiment where there is none. A probe artifact is written, read back and removed.

    Args:
        uri: Tracking address; a password may come from the environment.
        experiment: Name of the experiment.

    Raises:
        PreflightError: Something that a person must heal: no such server, a deleted experiment, a read-only store.
        TrackingError: The server is there and does not manage; a retry may succeed.
    """
    check_reachable(uri)
    from training.tracking.mlflow_store import MlflowStore

    try:
        store = MlflowStore(uri)
        experiment_id = store.open_experiment(experiment)
        location = store.artifact_location(experiment_id)
    except StoreRefusedError as error:
        raise PreflightError(str(error)) from None
    except StoreAwayError as error:
        raise TrackingError(f"{error} Is it an MLflow server, and of version 3 or newer?") from None
    probe_artifacts(location, uri)


def check_reachable(uri: str) -> None:
    """Find in seconds, without importing MLflow, that an HTTP server answers; other addresses are not looked at.

    Raises:
        PreflightError: It does not, or it refuses the user.
    """
    bare, _ = split_credentials(restore_uri(uri, os.environ))
    if urlsplit(bare).scheme not in ("http", "https"):
        return
    request = urllib.request.Request(f"{bare.rstrip('/')}/health", headers={"User-Agent": "ganger"})
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S):
            return
    except urllib.error.HTTPError as error:
        # An answer is an answer: a proxy may well ask for the password that MLflow is going to send.
        error.close()
        if error.code < 500:
            return
        reason = f"HTTP status {error.code}"
    except (OSError, ValueError) as error:
        reason = _describe(error)
    raise PreflightError(
        f"The MLflow server at {mask_uri(uri)} must answer within {_TIMEOUT_S:.0f} s. Received: {mask_text(reason)}. "
        "Start it (`ganger serve` on this machine) or correct MLFLOW_TRACKING_URI."
    )


def _describe(error: Exception) -> str:
    reason = getattr(error, "reason", error)
    if isinstance(reason, TimeoutError):
        return "no answer in time"
    if isinstance(reason, socket.gaierror):
        return "no such host name"
    return str(reason)


def probe_artifacts(location: str, uri: str) -> None:
    """Write an artifact at `location`, read it back and remove it.

    Raises:
        PreflightError: One of these does not work; names the artifact address and the way out.
    """
    content = uuid.uuid4().hex
    folder = f"ganger-probe-{content[:12]}"
    try:
        with translated_errors("probe artifacts at", location):
            found = _write_and_read(location, uri, folder, content)
    except (StoreAwayError, StoreRefusedError) as error:
        raise _artifact_error(location, uri, str(error)) from None
    if found != content:
        raise _artifact_error(location, uri, "another content than was written")


def _write_and_read(location: str, uri: str, folder: str, content: str) -> str:
    repository = _artifact_repository(location, uri)
    with tempfile.TemporaryDirectory(prefix="ganger-probe-") as temporary:
        source = Path(temporary) / "probe.txt"
        source.write_text(content, encoding="utf-8")
        target = Path(temporary) / "read"
        target.mkdir()
        repository.log_artifact(str(source), folder)
        read = Path(repository.download_artifacts(f"{folder}/probe.txt", str(target)))
        found = read.read_text(encoding="utf-8")
    # A store that forbids deletion keeps a probe of 32 bytes; that is no reason to refuse a training.
    with contextlib.suppress(StoreAwayError, StoreRefusedError), translated_errors("delete at", location):
        repository.delete_artifacts(folder)
    return found


def _artifact_repository(location: str, uri: str) -> Any:
    from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository

    bare, _ = split_credentials(restore_uri(uri, os.environ))
    return get_artifact_repository(location, tracking_uri=bare)


def _artifact_error(location: str, uri: str, received: str) -> PreflightError:
    return PreflightError(
        f"Artifacts must be writable at {mask_uri(location)} (as the MLflow server {mask_uri(uri)} says). "
        f"Received: {received}. Give this machine access to it, or start the server with "
        "`--artifacts-destination`, so that it passes artifacts on itself."
    )
