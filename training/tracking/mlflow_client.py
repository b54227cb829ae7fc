"""Connects to MLflow: quiet, quick to give up, never through the process-wide active run.

Importing MLflow costs 3.4 s of computing time, of which pandas takes 1.3 s; nothing that the tracker calls needs
pandas. So in processes that are ours alone it is imported as in an environment without pandas, which MLflow supports
(`mlflow-skinny`).
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import warnings
from collections.abc import Iterator
from typing import Any

from training import settings
from training.tracking.mask import mask_text, restore_uri, split_credentials
from training.tracking.store import StoreAwayError, StoreRefusedError

#: The writer waits and tries again by itself; MLflow's own 7 tries of 120 s would hold it for minutes.
_ENVIRONMENT = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "true",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "0",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "20",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "MLFLOW_TRUNCATE_LONG_VALUES": "false",
}
_OWN_PROCESSES = ("training.run.supervisor", "training.worker")
_REFUSALS = frozenset(
    ["INVALID_PARAMETER_VALUE", "BAD_REQUEST", "INVALID_STATE", "RESOURCE_DOES_NOT_EXIST", "RESOURCE_ALREADY_EXISTS"]
)


def connect(uri: str) -> Any:
    """Return an `MlflowClient` for a stored `uri`; passwords come from the environment.

    Raises:
        StoreAwayError: There is no such server or database, or it does not answer.
    """
    bare, credentials = split_credentials(restore_uri(uri, os.environ))
    for name, value in (_ENVIRONMENT | credentials).items():
        os.environ.setdefault(name, value)
    with translated_errors("connect to", uri):
        _import_mlflow()
        from mlflow.tracking.client import MlflowClient

        return MlflowClient(tracking_uri=bare)


@contextlib.contextmanager
def process_wide_address(uri: str) -> Iterator[None]:
    """Make `uri` the address of the process for a while.

    The registry looks the source of a version up through it, whatever address its client was given.
    """
    from mlflow.tracking import is_tracking_uri_set, set_tracking_uri

    bare, _ = split_credentials(restore_uri(uri, os.environ))
    before = os.environ.get(settings.TRACKING_URI) if is_tracking_uri_set() else None
    set_tracking_uri(bare)
    try:
        yield
    finally:
        # MLflow has moved the variable too.
        set_tracking_uri(None)
        if before is not None:
            os.environ[settings.TRACKING_URI] = before


def _import_mlflow() -> None:
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    lean = spec is not None and spec.name in _OWN_PROCESSES and "pandas" not in sys.modules
    if lean:
        sys.modules["pandas"] = None  # type: ignore[assignment]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import mlflow.tracking.client  # noqa: F401
    finally:
        if lean:
            del sys.modules["pandas"]
    for name in ("mlflow", "alembic", "urllib3.connectionpool"):
        logging.getLogger(name).setLevel(logging.ERROR)


@contextlib.contextmanager
def translated_errors(doing: str, uri: str) -> Iterator[None]:
    """Turn whatever MLflow and the libraries beneath it raise into our two errors, without passwords.

    Args:
        doing: What was tried, such as `log metrics at`.
        uri: The address, for the message.

    Raises:
        StoreRefusedError: The server will never take the call.
        StoreAwayError: Anything else: no connection, a locked database, a full disk, missing rights.
    """
    try:
        yield
    except (StoreAwayError, StoreRefusedError):
        raise
    except Exception as error:  # noqa: BLE001 - any library beneath MLflow may raise anything
        text = mask_text(" ".join(str(error).split()), os.environ)[:500]
        message = f"Could not {doing} {mask_text(uri)}: {type(error).__name__}: {text}"
        if getattr(error, "error_code", None) in _REFUSALS:
            raise StoreRefusedError(message) from None
        raise StoreAwayError(message) from None


def error_code(error: BaseException) -> str:
    """Return MLflow's code of an error, or an empty text for an error that is not MLflow's."""
    return str(getattr(error, "error_code", ""))
