"""Arguments that several commands share."""

from __future__ import annotations

import re
from pathlib import Path

import click

from training.errors import spec_error
from training.run.folder import RunFolder
from training.spec.file import PipelineFile
from training.spec.loader import load_pipeline, parse_overrides

spec_argument = click.argument("spec", type=click.Path(path_type=Path))
set_option = click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="FIELD=VALUE",
    help="Change a field, such as train.epochs=3; repeatable.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object on standard output.")
run_argument = click.argument("run_id", metavar="RUN")


def load(spec: Path, overrides: tuple[str, ...]) -> PipelineFile:
    """Load a pipeline file with the values of `--set`."""
    return load_pipeline(spec, parse_overrides(overrides))


def find_run(run_id: str) -> RunFolder:
    """Return the folder of a run that exists; a unique beginning of its id will do.

    Raises:
        SpecError: No run, or several, have such an id.
    """
    exact = RunFolder.of(run_id if re.fullmatch(r"\w[\w.-]*", run_id, re.ASCII) else "-")
    if exact.record.exists():
        return exact
    matches = sorted(exact.path.parent.glob(f"{exact.run_id}*/{exact.record.name}"))
    if len(matches) == 1:
        return RunFolder(matches[0].parent)
    what = f"{len(matches)} runs begin with {run_id!r}" if matches else f"there is no run {run_id!r}"
    raise spec_error("", f"{what} in {exact.path.parent}.", "List them: ganger runs")
