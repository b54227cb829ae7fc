"""The task `fetch_model`: downloads a model of the registry or of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from training.errors import TrackingError, spec_error
from training.run.atomic import new_folder
from training.run.rank import RankContext
from training.tracking.mlflow_client import connect, process_wide_address, translated_errors
from training.tracking.store import StoreAwayError, StoreRefusedError


def fetch_model(ctx: RankContext) -> None:
    """Download the model that the payload's `source` names to its `target`, whole or not at all.

    Raises:
        SpecError: There is no such model.
        TrackingError: The server does not answer.
    """
    ctx.ready()
    uri, source = ctx.payload["tracking_uri"], ctx.payload["source"]
    ctx.heartbeat(f"fetching {source}")
    try:
        client = connect(uri)
        with translated_errors(f"fetch {source} from", uri), process_wide_address(uri):
            address = _find_model_of_run(client, source) if ctx.payload["kind"] == "run" else source
            _download(address, Path(ctx.payload["target"]))
    except StoreAwayError as error:
        if "not found" in str(error).lower():
            raise _no_such_model(source, error) from None
        raise TrackingError(str(error)) from None
    except StoreRefusedError as error:
        raise _no_such_model(source, error) from None
    print(f"fetched {source} ({address})", flush=True)
    ctx.result({"model_uri": address})


def _find_model_of_run(client: Any, run_id: str) -> str:
    """Return the address of the newest model that was logged in a run."""
    outputs = client.get_run(run_id).outputs
    models = outputs.model_outputs if outputs else []
    return f"models:/{max(models, key=lambda model: model.step).model_id}" if models else f"runs:/{run_id}/model"


def _download(address: str, target: Path) -> None:
    from mlflow.artifacts import download_artifacts

    with new_folder(target) as folder:
        download_artifacts(artifact_uri=address, dst_path=str(folder))


def _no_such_model(source: str, error: Exception) -> Exception:
    return spec_error(
        "model.initialize_from", f"must be a model that the tracking server has. Received: {source}. {error}"
    )
