"""Brings the model of `model.initialize_from` to where the ranks can read it: they know no tracking server."""

from __future__ import annotations

import sys
from pathlib import Path

from training.errors import Problem, SpecError, spec_error
from training.plan.initial_model import parse_initial_model
from training.plan.jobs import plan_single_job
from training.settings import read_tracking_uri
from training.spec.file import PipelineFile
from training.spec.wording import list_words
from training.steps.context import StepContext
from training.steps.job import run_job
from training.tracking.mask import mask_uri

NAME = "fetch_model"
_FIELD = "model.initialize_from"
#: Files that hold weights, of Keras and of Gluon.
_SUFFIXES = (".keras", ".params", ".safetensors")


def fetch_initial_model(ctx: StepContext) -> Path | None:
    """Return the folder or file of the model to start from, fetched once per run; None where the spec names none.

    Raises:
        SpecError: There is no such model.
        TrackingError: The server does not answer.
    """
    wanted = ctx.spec.model.initialize_from if ctx.spec.model else None
    if wanted is None:
        return None
    source = parse_initial_model(wanted)
    if source.kind == "path":
        return find_local_model(wanted, ctx.file.base_dir)
    if not ctx.run.initial_model.exists():
        payload = {
            "task": NAME,
            "tracking_uri": mask_uri(read_tracking_uri()),
            "source": source.text,
            "kind": source.kind,
            "target": str(ctx.run.initial_model),
        }
        run_job(
            ctx,
            plan_single_job(run_id=ctx.run.run_id, name=NAME, python=sys.executable, payload=payload, tracks=True),
            again=True,
        )
    return ctx.run.initial_model


def find_local_model(wanted: str, base_dir: Path) -> Path:
    """Return the path of a model in a folder or a file of this machine.

    Raises:
        SpecError: It is neither a folder in MLflow's format nor a file of weights.
    """
    path = base_dir / Path(wanted).expanduser()
    if (path / "MLmodel").is_file() or (path.suffix in _SUFFIXES and path.is_file()):
        return path
    raise spec_error(
        _FIELD,
        "must be an address such as models:/name@alias, the id of an MLflow run, a folder in MLflow's format (with a "
        f"file MLmodel) or a file with weights ({list_words(_SUFFIXES)}). Received: {wanted}, looked for as {path}.",
    )


def find_initial_model_problems(file: PipelineFile) -> tuple[Problem, ...]:
    """Return what is wrong with a model to start from that is a path; others are asked for when the training begins."""
    wanted = file.spec.model.initialize_from if file.spec.model else None
    if wanted is None or parse_initial_model(wanted).kind != "path":
        return ()
    try:
        find_local_model(wanted, file.base_dir)
    except SpecError as error:
        return error.problems
    return ()
