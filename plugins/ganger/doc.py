"""The page of a DAG, in Markdown: what the pipeline does, and the file that says so. Pure."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Sequence

from training.errors import Problem
from training.spec.file import PipelineFile
from training.spec.pipeline import PipelineSpec

#: The page is stored with every version of the DAG.
MAX_SPEC_CHARACTERS = 20_000

HOW_IT_RUNS = (
    "**How it runs.** `prepare_data` and `provision_cluster` run side by side. `train` starts all ranks as one gang: "
    "they succeed or fail together, and the rank that fails first heads the error. `evaluate` holds the model to what "
    "it must reach, `register_model` registers it, and `teardown_cluster` runs whatever happened. *Trigger* opens a "
    'form with the usual fields; any other field goes into the JSON by its dotted path: `{"train.stop_grace_s": 5}`.'
)


def render_doc(file: PipelineFile, text: str) -> str:
    """Return the page of a pipeline's DAG.

    Args:
        file: The pipeline.
        text: Its YAML.
    """
    name = file.path.name if file.path else "written in Python"
    table = "\n".join(f"| {what} | {_cell(value)} |" for what, value in _describe(file.spec))
    return "\n\n".join(
        (
            file.spec.description or file.spec.name,
            f"| | |\n|---|---|\n{table}",
            HOW_IT_RUNS,
            f"**Spec** ({name})",
            _fence(text),
        )
    )


def render_problems(source: str, problems: Sequence[Problem]) -> str:
    """Return the page that stands for a pipeline file that cannot become a DAG."""
    rows = "\n".join(
        "| "
        + " | ".join(map(_cell, (_place(problem, source), problem.field or "-", problem.message, problem.remedy)))
        + " |"
        for problem in problems
    )
    return (
        f"**{source} is not a pipeline yet.** Correct it: this DAG then gives way to the pipeline.\n\n"
        f"| where | field | what is wrong | what to do |\n|---|---|---|---|\n{rows}"
    )


def _describe(spec: PipelineSpec) -> Iterable[tuple[str, str]]:
    train, workers = spec.train, spec.workers
    yield "engine", f"{train.engine}, strategy {train.strategy}"
    yield "gang", f"{workers} {'worker' if workers == 1 else 'workers'} on {spec.cluster.backend}"
    if train.script is not None:
        yield "script", f"`{shlex.join([train.script, *train.args])}`"
    else:
        yield "training", f"{train.epochs} epochs, global batch {train.batch_size}, seed {train.seed}"
    if spec.model is not None:
        yield "model", f"`{spec.model.entrypoint}` {json.dumps(spec.model.params) if spec.model.params else ''}".strip()
    if spec.builds_dataset:
        yield "data", "`build_dataset` of the model file"
    elif spec.data is not None:
        yield "data", f"`{spec.data.source}`, {spec.data.validation_fraction:.0%} held out"
    for name, bound in sorted(spec.evaluate.bounds().items()):
        limits = [
            text
            for text, limit in ((f"at least {bound.min}", bound.min), (f"at most {bound.max}", bound.max))
            if limit is not None
        ]
        yield f"required {name}", ", ".join(limits)
    if spec.registration is not None:
        alias = f"@{spec.registration.alias}" if spec.registration.alias else ""
        yield (
            "registered as",
            f"{spec.registration.model}{alias}" + (", after approval" if spec.registration.approval else ""),
        )
    yield "MLflow experiment", spec.experiment_name


def _place(problem: Problem, source: str) -> str:
    file = problem.file or source
    return f"{file}:{problem.line}" if problem.line else file


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _fence(text: str) -> str:
    if len(text) > MAX_SPEC_CHARACTERS:
        text = text[:MAX_SPEC_CHARACTERS] + "\n# … cut here: the whole of it is in the file"
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}yaml\n{text.rstrip()}\n{fence}"
