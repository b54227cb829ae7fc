"""Finds the MLflow run of a training or makes it: exactly one, which retries and later steps continue (K39, K41)."""

from __future__ import annotations

from collections.abc import Mapping

from training.plan.job import TrackingPlan
from training.run.folder import RunFolder
from training.run.job import TrackingRef
from training.tracking.mask import mask_uri
from training.tracking.naming import (
    MAX_PARAM_LENGTH,
    MAX_TAG_LENGTH,
    TAG_PREVIOUS_RUN,
    TAG_RETRIED_PARAM,
    TAG_RUN_ID,
    shorten,
    valid_key,
)
from training.tracking.store import MAX_PARAMS, MAX_TAGS, RunState, TrackingStore, split_texts


def attach_run(
    store: TrackingStore, plan: TrackingPlan, run: RunFolder, *, owner: bool, start_ms: int, tags: Mapping[str, str]
) -> list[str]:
    """Make the run's `TrackingRef` name a run on the server that has the plan's params and tags; return notes.

    The run is the one that the ref names, else the one that bears the tag `ganger.run_id`, else a new one. A training
    that took the place of an earlier one has a run of its own, which bears the earlier one's id as a tag.

    Args:
        store: The server.
        plan: What is to be written down.
        run: Whose run it is.
        owner: Whether the job is the training itself, which sets the status; a later job only adds to the run.
        start_ms: Start of a new run.
        tags: Set beside those of the plan.

    Raises:
        StoreAwayError: Try again later.
        StoreRefusedError: The experiment cannot be used.
    """
    ref = TrackingRef.read(run.tracking)
    state = store.read_run(ref.run_id) if ref else None
    if ref and state:
        if mask_uri(plan.tracking_uri) != ref.tracking_uri:
            ref.model_copy(update={"tracking_uri": mask_uri(plan.tracking_uri)}).write(run.tracking)
        return _continue(store, plan, ref.run_id, state, tags) if owner else []
    earlier = _find_earlier(run)
    previous = ref.run_id if ref and not earlier else earlier
    all_tags = {TAG_RUN_ID: run.run_id} | dict(tags) | ({TAG_PREVIOUS_RUN: previous} if previous else {})
    notes = [_gone_note(ref, plan)] if ref else []
    return notes + _find_or_create(store, plan, run, start_ms, all_tags)


def _find_earlier(run: RunFolder) -> str:
    """Return the id of the MLflow run of the training before this one; empty for the first."""
    refs = (TrackingRef.read(earlier.tracking) for earlier in run.earlier())
    return next((ref.run_id for ref in refs if ref is not None), "")


def _gone_note(ref: TrackingRef, plan: TrackingPlan) -> str:
    return (
        f"The MLflow run {ref.run_id} of an earlier try is not at {mask_uri(plan.tracking_uri)} (deleted, or another "
        "server): a new run continues it and bears its id as a tag."
    )


def _find_or_create(
    store: TrackingStore, plan: TrackingPlan, run: RunFolder, start_ms: int, tags: Mapping[str, str]
) -> list[str]:
    experiment_id = store.open_experiment(plan.experiment)
    earlier = _find_earlier(run)
    marks = {TAG_RUN_ID: run.run_id} | ({TAG_PREVIOUS_RUN: earlier} if earlier else {})
    tag = TAG_PREVIOUS_RUN if earlier else TAG_RUN_ID
    run_id = store.find_run(experiment_id, tag, marks[tag])
    if run_id is None:
        run_id = store.create_run(experiment_id, plan.run_name, marks, start_ms)
    uri = mask_uri(plan.tracking_uri)
    TrackingRef(tracking_uri=uri, experiment_id=experiment_id, run_id=run_id).write(run.tracking)
    state = store.read_run(run_id) or RunState(experiment_id=experiment_id, status="RUNNING", params={}, tags={})
    return _continue(store, plan, run_id, state, tags)


def _continue(
    store: TrackingStore, plan: TrackingPlan, run_id: str, state: RunState, tags: Mapping[str, str]
) -> list[str]:
    params = prepare_params(plan.params)
    differing = {k: v for k, v in params.items() if state.params.get(k, v) != v}
    if state.status != "RUNNING":
        store.set_status(run_id, "RUNNING", None)
    _write_params(store, run_id, plan, {k: v for k, v in params.items() if k not in state.params})
    retried = {valid_key(TAG_RETRIED_PARAM + k): v for k, v in differing.items()}
    for part in split_texts(prepare_tags(dict(tags) | plan.tags) | retried, MAX_TAGS):
        store.set_tags(run_id, part)
    return [_differing_note(name, state.params[name], value) for name, value in differing.items()]


def _write_params(store: TrackingStore, run_id: str, plan: TrackingPlan, new: Mapping[str, str]) -> None:
    for part in split_texts(new, MAX_PARAMS):
        store.log_params(run_id, part)
    for name, value in plan.params.items():
        if len(value) > MAX_PARAM_LENGTH and valid_key(name) in new:
            store.log_text(run_id, value, _artifact_of(name))


def _differing_note(name: str, old: str, new: str) -> str:
    return (
        f"The param {name} was {shorten(old, 80)!r} when the MLflow run began and is {shorten(new, 80)!r} now; "
        f"the new value is the tag {TAG_RETRIED_PARAM}{name}."
    )


def _artifact_of(name: str) -> str:
    return f"params/{valid_key(name).replace('/', '_')}.txt"


def prepare_params(params: Mapping[str, str]) -> dict[str, str]:
    """Return params under valid names with values that MLflow takes; a long value says that, and where, it goes on.

    >>> prepare_params({"epochs": "3", "x" * 3: "y" * 6001})["xxx"][-60:]
    'rs, sha256 f61b61cc91c8; all of it: artifact params/xxx.txt]'
    """
    return {
        valid_key(name): shorten(value, MAX_PARAM_LENGTH, f"artifact {_artifact_of(name)}")
        for name, value in params.items()
    }


def prepare_tags(tags: Mapping[str, str]) -> dict[str, str]:
    """Return tags under valid names with values that MLflow takes."""
    return {valid_key(name): shorten(value, MAX_TAG_LENGTH) for name, value in tags.items()}
