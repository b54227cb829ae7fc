"""Holds user code, a script or a model file, to one MLflow run: that of its training (K39).

Rank 0: whatever run the code starts at the top is the run that the supervisor opened, however often, and whichever
experiment or address it names; runs nested in it are its own. All other ranks log to a store in the temporary folder of
the job, which goes with it: their calls work, and nobody sees them.
"""

from __future__ import annotations

import functools
import os
import socket
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

from training import settings
from training.run.rank import RankContext
from training.script.after_import import Action
from training.tracking.mask import mask_uri, split_credentials

_QUIET = {"MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "true", "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true"}
_OF_THE_RUN = (settings.MLFLOW_RUN_ID, settings.EXPERIMENT_NAME, "MLFLOW_EXPERIMENT_ID", "MLFLOW_REGISTRY_URI")
#: MLflow takes some seconds to come up, less than a framework's import.
_RELAY_S = 60.0
#: The one that every store of MLflow has.
_ONLY_EXPERIMENT = "0"
#: Modules of MLflow whose `autolog` is that of Keras.
_FLAVORS = ("keras", "tensorflow")


def keep_script_to_one_run(ctx: RankContext) -> Mapping[str, Action]:
    """Set the environment of this process, and return what must follow when the script imports MLflow."""
    run_id = os.environ.get(settings.MLFLOW_RUN_ID)
    reason = "MLflow's server did not answer when the training began"
    return _keep_to_one_run(ctx, run_id, reason)


def keep_model_file_to_one_run(ctx: RankContext) -> Mapping[str, Action]:
    """Do so for code that a task of ours runs: a model file, and a saved model's code where it is loaded again.

    Autologging does nothing: it would log once more what the training tells anyhow, on another step axis.
    """
    is_told = bool(ctx.payload.get("logs_to_mlflow"))
    run_id = os.environ.get(settings.MLFLOW_RUN_ID) if is_told else None
    if is_told:
        reason = "MLflow's server did not answer when the training began"
    elif ctx.payload.get("task") == "train":
        reason = "the model file itself must import mlflow"
    else:
        reason = "user code logs to MLflow in the step train only"
    return {
        **_keep_to_one_run(ctx, run_id, reason),
        **{f"mlflow.{flavor}": partial(_leave_logging, flavor) for flavor in _FLAVORS},
    }


def _keep_to_one_run(ctx: RankContext, run_id: str | None, reason: str) -> dict[str, Action]:
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    if ctx.is_chief and run_id:
        bare, credentials = split_credentials(os.environ.get(settings.TRACKING_URI, ""))
        os.environ.update({settings.TRACKING_URI: bare, **credentials})
        return {"mlflow": partial(_attach, run_id=run_id, uri=bare, relayed=bool(ctx.payload.get("relayed")))}
    nowhere = _log_to_nowhere(ctx.rank)
    return {"mlflow": partial(_stay_away, uri=nowhere, reason=reason if ctx.is_chief else "")}


def _log_to_nowhere(rank: int) -> str:
    for name in _OF_THE_RUN:
        os.environ.pop(name, None)
    store = Path(tempfile.gettempdir()).absolute() / f"mlflow-of-rank-{rank}"
    os.environ.update({settings.TRACKING_URI: store.as_uri(), "MLFLOW_ALLOW_FILE_STORE": "true"})
    return store.as_uri()


def _stay_away(mlflow: ModuleType, *, uri: str, reason: str) -> None:
    """Have the first run that is started say that it is not kept, unless `reason` is empty."""
    _hold_address(mlflow, uri)
    _replace(mlflow, "set_experiment", lambda *_, **__: mlflow.MlflowClient().get_experiment(_ONLY_EXPERIMENT))
    start, said = mlflow.start_run, [not reason]

    @functools.wraps(start)
    def start_run(*args: Any, **options: Any) -> Any:
        if not said[0]:
            said[0] = True
            _say(f"mlflow.start_run: what the code logs to MLflow is not kept: {reason}.")
        return start(*args, **options)

    _replace(mlflow, "start_run", start_run)


def _leave_logging(flavor: str, module: ModuleType) -> None:
    module.autolog = lambda *_, **__: _say(f"mlflow.{flavor}.autolog: nothing to do, Ganger logs this training.")  # type: ignore[attr-defined]


def _attach(mlflow: ModuleType, *, run_id: str, uri: str, relayed: bool) -> None:
    if relayed:
        _wait_for_server(uri)
    _hold_address(mlflow, uri)
    _replace(mlflow, "set_experiment", partial(_keep_experiment, mlflow, run_id))
    _replace(mlflow, "start_run", _make_start_run(mlflow, mlflow.start_run, run_id))


def _make_start_run(mlflow: ModuleType, start: Callable[..., Any], wanted: str) -> Callable[..., Any]:
    def start_run(
        run_id: str | None = None, experiment_id: str | None = None, *args: Any, nested: bool = False, **options: Any
    ) -> Any:
        """Start or go on with a run, as `mlflow.start_run` does; at the top, always that of the training."""
        is_inner = mlflow.active_run() is not None
        if run_id is None and not is_inner:
            run_id, experiment_id = wanted, None
        # MLflow would take the variable for the id of a nested run; what the script starts as a process shall have it.
        os.environ.pop(settings.MLFLOW_RUN_ID, None)
        try:
            return start(run_id, experiment_id, *args, nested=nested, **options)
        finally:
            os.environ[settings.MLFLOW_RUN_ID] = wanted

    return start_run


def _keep_experiment(mlflow: ModuleType, run_id: str, *args: Any, **options: Any) -> Any:
    client = mlflow.MlflowClient()
    experiment = client.get_experiment(client.get_run(run_id).info.experiment_id)
    _say(f"mlflow.set_experiment: the run stays in the pipeline's experiment, {experiment.name}.")
    return experiment


def _hold_address(mlflow: ModuleType, own: str) -> None:
    """Have MLflow log to `own`, whatever address the code sets, by a call or in the environment.

    MLflow's autologging sets the address that there is once more: nothing is said of that.
    """
    mlflow.set_tracking_uri(own)  # comes before the variable, which the code may have set

    def set_tracking_uri(uri: str | Path) -> None:
        if str(uri) != own:
            _say(f"mlflow.set_tracking_uri: the run stays where Ganger tracks it. Ignored: {mask_uri(str(uri))}.")

    _replace(mlflow, "set_tracking_uri", set_tracking_uri)


def _replace(mlflow: ModuleType, name: str, function: Callable[..., Any]) -> None:
    """Put `function` in the place of one of MLflow's, under each name that the script or MLflow may call it by."""
    original = getattr(mlflow, name)
    utils = mlflow.tracking._tracking_service.utils
    for module in (mlflow, mlflow.tracking, mlflow.tracking.fluent, utils):
        if getattr(module, name, None) is original:
            setattr(module, name, function)


def _wait_for_server(uri: str) -> None:
    """Wait for a server that was started along with this process; without it MLflow's calls say what is wrong."""
    address = urlsplit(uri)
    until = time.monotonic() + _RELAY_S
    while time.monotonic() < until:
        try:
            socket.create_connection((str(address.hostname), address.port or 80), timeout=1.0).close()
        except OSError:
            time.sleep(0.1)
        else:
            return


def _say(text: str) -> None:
    print(text, flush=True)
