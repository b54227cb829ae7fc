"""Asks the engine how the model of a pipeline will be split: for the plan, and to refuse before anything starts (K31).

The model must be built for that, which takes TensorFlow and the user's code: so a process of the engine's answers.
"""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from typing import Any

from training.errors import PreflightError
from training.launch.environment import render_probe_environment
from training.plan.facts import DataFacts
from training.plan.machine import EnvironmentFacts
from training.run.event import RECORD_SEPARATOR
from training.spec.file import PipelineFile

_REPORT = "training.engines.tensorflow_keras.pipelining.split_report"
_LAST_LINES = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitReport:
    """What the engine says.

    Attributes:
        stages: Lines for the plan; empty where nobody can know yet.
        problem: Why the model cannot be split so; empty where it can.
    """

    stages: tuple[str, ...] = ()
    problem: str = ""


def read_split(file: PipelineFile, environment: EnvironmentFacts, facts: DataFacts | None) -> SplitReport:
    """Return how the model will be split. Nothing is known where the shape of a row is not, or for other strategies.

    Raises:
        PreflightError: The engine does not answer.
    """
    spec = file.spec
    unknown = facts is None or facts.feature_shape is None
    if spec.train.strategy != "pipeline" or spec.model is None or unknown or environment.problem:
        return SplitReport()
    assert facts is not None
    question = {
        "spec": spec.model_dump(mode="json", by_alias=True),
        "base_dir": str(file.base_dir),
        "shape": facts.feature_shape,
        "dtype": facts.feature_dtype,
        "label_shape": facts.label_shape or (),
        "label_dtype": facts.label_dtype or ("int64" if facts.classes else "float32"),
    }
    answer = _ask(environment.python, question, spec.train.start_timeout_s)
    return SplitReport(stages=tuple(answer.get("stages", ())), problem=answer.get("problem", ""))


def _ask(python: str, question: dict[str, Any], timeout_s: float) -> dict[str, Any]:
    try:
        done = subprocess.run(
            [python, "-P", "-m", _REPORT],
            input=json.dumps(question),
            env=render_probe_environment(os.environ),
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise PreflightError(
            f"the model must be built and split within train.start_timeout_s, {timeout_s:g} s. Received: no answer."
        ) from None
    if done.returncode != 0:
        said = "\n".join((done.stderr or done.stdout).strip().splitlines()[-_LAST_LINES:])
        raise PreflightError(
            f"the model must be built before it is split. Received: exit code {done.returncode}.\n{said}"
        )
    answers = [line for line in done.stdout.split("\n") if line.startswith(RECORD_SEPARATOR)]
    if not answers:
        raise PreflightError("the model must be built before it is split. Received: an exit without an answer.")
    answer: dict[str, Any] = json.loads(answers[-1].removeprefix(RECORD_SEPARATOR))
    return answer
