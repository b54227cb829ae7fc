"""The task `register_model`: one version in the registry for the logged model of a run, however often it is run."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from training import settings
from training.errors import PreflightError, SpecError, TrackingError, spec_error
from training.run.folder import JobFolder, RunFolder
from training.run.job import TrackingRef
from training.run.rank import RankContext
from training.tracking.mlflow_client import connect, error_code, process_wide_address, translated_errors
from training.tracking.replay import replay
from training.tracking.store import StoreAwayError, StoreRefusedError

_READY_TIMEOUT_S = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredVersion:
    """A version in the registry."""

    model: str
    version: str
    alias: str | None

    @property
    def model_uri(self) -> str:
        """Address of this very version."""
        return f"models:/{self.model}/{self.version}"


def register_model(ctx: RankContext) -> None:
    """Register the model of the payload's run, move the alias and hand on `model`, `version`, `alias`, `model_uri`.

    Raises:
        SpecError: The registry does not take the model's name or alias.
        PreflightError: The run has no logged model.
        TrackingError: The server does not answer.
    """
    ctx.ready()
    ref = _latest_ref(TrackingRef.model_validate(ctx.payload["tracking"]))
    ctx.heartbeat("registering the model")
    try:
        version = register_version(ref, ctx.payload["model"], ctx.payload.get("alias"), ctx.payload.get("tags", {}))
    except (StoreAwayError, StoreRefusedError) as error:
        # The step that reads the class name knows the tree of training.errors only.
        raise TrackingError(str(error)) from None
    ctx.result(
        {
            "model": version.model,
            "version": version.version,
            "alias": version.alias,
            "model_uri": version.model_uri,
        }
    )


def register_version(ref: TrackingRef, model: str, alias: str | None, tags: Mapping[str, str]) -> RegisteredVersion:
    """Return the version of `model` that is made from the logged model of `ref`, made where there is none.

    Args:
        ref: A run with a logged model.
        model: Name in the registry; made where there is none.
        alias: Moved to the version.
        tags: Of the version.

    Raises:
        SpecError: The registry does not take the name or the alias.
        PreflightError: The run has no logged model.
        StoreAwayError: The server does not answer.
        StoreRefusedError: The server will not take the call.
    """
    if ref.model_uri is None:
        raise PreflightError(
            f"The MLflow run {ref.run_id} must have a logged model. Received: none. "
            "Run train again, or see the notes of its result: an upload may be waiting for the server."
        )
    client = connect(ref.tracking_uri)
    _create_model(client, ref, model)
    with translated_errors("register the model at", ref.tracking_uri), process_wide_address(ref.tracking_uri):
        version = _find_version(client, model, ref) or _create_version(client, model, ref)
        for name, value in tags.items():
            client.set_model_version_tag(model, version, name, value)
    if alias:
        _set_alias(client, ref, model, alias, version)
    return RegisteredVersion(model=model, version=version, alias=alias)


def _latest_ref(given: TrackingRef) -> TrackingRef:
    """Return the run's current ref, after sending what is still in its journals: the model may be among it."""
    if given.model_uri is not None or not os.environ.get(settings.JOB_DIR):
        return given
    run = RunFolder(JobFolder(Path(os.environ[settings.JOB_DIR])).path.parent.parent)
    replay(run)
    return TrackingRef.read(run.tracking) or given


def _create_model(client: Any, ref: TrackingRef, model: str) -> None:
    try:
        with translated_errors(f"register {model!r} at", ref.tracking_uri):
            try:
                client.create_registered_model(model)
            except Exception as error:
                if error_code(error) != "RESOURCE_ALREADY_EXISTS":
                    raise
    except StoreRefusedError as error:
        raise _name_error("register.model", model, error) from None


def _find_version(client: Any, model: str, ref: TrackingRef) -> str | None:
    versions = client.search_model_versions(f"name = '{model}' and run_id = '{ref.run_id}'")
    same = [v for v in versions if f"models:/{v.model_id}" == ref.model_uri or v.source == ref.model_uri]
    usable = [int(version.version) for version in same if version.status == "READY"]
    return str(max(usable)) if usable else None


def _create_version(client: Any, model: str, ref: TrackingRef) -> str:
    model_id = str(ref.model_uri).removeprefix("models:/")
    # Waits until the version is ready.
    made = client.create_model_version(
        model, ref.model_uri, run_id=ref.run_id, model_id=model_id, await_creation_for=_READY_TIMEOUT_S
    )
    return str(made.version)


def _set_alias(client: Any, ref: TrackingRef, model: str, alias: str, version: str) -> None:
    try:
        with translated_errors(f"set the alias {alias!r} at", ref.tracking_uri):
            client.set_registered_model_alias(model, alias, version)
    except StoreRefusedError as error:
        raise _name_error("register.alias", alias, error) from None


def _name_error(field: str, value: str, error: StoreRefusedError) -> SpecError:
    return spec_error(field, f"must be a name that the registry takes. Received: {value!r}. {error}", "Choose another.")
