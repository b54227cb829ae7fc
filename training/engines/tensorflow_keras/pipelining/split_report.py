"""Says how a model would be split, before anything of the training starts; run by the engine's Python.

    python -P -m training.engines.tensorflow_keras.pipelining.split_report < QUESTION

The question is JSON: `spec`, `base_dir`, and of a row of the data `shape`, `dtype`, `label_shape` and `label_dtype`.
The answer is the line that begins with a record separator, since the user's code may print, too, at its end even: JSON
with the lines of the plan under `stages`, or with what is wrong under `problem`.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from traceback import extract_tb
from typing import Any

import numpy as np

from training.engines.tensorflow_keras.keras_model import build_keras_model, describe_shape, say_error
from training.engines.tensorflow_keras.pipelining.splitting import cut_stages, split_model
from training.engines.tensorflow_keras.pipelining.trying import try_stages
from training.engines.training_job import require_model
from training.errors import GangerError, WorkerError
from training.model_file import BUILD_MODEL, load_model_file
from training.plan.stage_table import render_moving, render_other_counts, render_split
from training.run.event import RECORD_SEPARATOR
from training.spec.pipeline import PipelineSpec

_FEW_ROWS = 2
_OURS = Path(__file__).parents[1]


def report_split(question: dict[str, Any]) -> list[str]:
    """Return the lines of the plan.

    Raises:
        SpecError: The model file does not do, or the model cannot be split so.
        WorkerError: The model cannot be built, or neither it nor its stages work on such rows.
    """
    spec = PipelineSpec.model_validate(question["spec"])
    model_spec, train = require_model(spec), spec.train
    assert train.strategy == "pipeline"
    file = load_model_file(model_spec, Path(question["base_dir"]))
    x = np.zeros((_FEW_ROWS, *question["shape"]), question["dtype"] or "float32")
    y = np.zeros((_FEW_ROWS, *question["label_shape"]), question["label_dtype"])
    with _find_line(f"{BUILD_MODEL} of {file.entrypoint} must return a model"):
        model = build_keras_model(file, (x, y), train.seed, model_spec.freeze)
    split = split_model(model, train.pipeline, spec.workers)
    with _find_line(f"the stages of {file.entrypoint} must work on rows of shape {describe_shape(x)}"):
        moving = try_stages(model, cut_stages(model, split.partition), (x, y))
    return [
        *render_split(split.layers, split.partition, train.pipeline, train.batch_size),
        *render_moving(moving),
        *render_other_counts(split.layers, spec.workers, train.pipeline, train.batch_size),
    ]


@contextlib.contextmanager
def _find_line(must: str) -> Iterator[None]:
    """Say of an error of the user's code what `must` have been, and where it came up."""
    try:
        yield
    except GangerError:
        raise
    except Exception as error:
        raise WorkerError(f"{must}. Received: {say_error(error)}{_find_place(error)}") from error


def _find_place(error: Exception) -> str:
    """Return the line of the user's code in which `error` came up, in words; Keras' own lines say nothing to them."""
    frames = [frame for frame in extract_tb(error.__traceback__) if not _is_of_library(frame.filename)]
    return f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""


def _is_of_library(filename: str) -> bool:
    path = Path(filename)
    return not path.is_file() or "site-packages" in path.parts or path.is_relative_to(_OURS)


def main() -> None:
    """Answer the question on standard input."""
    try:
        answer: dict[str, Any] = {"stages": report_split(json.load(sys.stdin))}
    except GangerError as error:
        answer = {"problem": str(error)}
    print(f"\n{RECORD_SEPARATOR}{json.dumps(answer)}", flush=True)


if __name__ == "__main__":
    main()
