"""Says how a model would be split, before anything of the training starts; run by the engine's Python.

    python -P -m training.engines.tensorflow_keras.pipelining.split_report < QUESTION

The question is JSON: `spec`, `base_dir`, and of a row of the data `shape`, `dtype` and `classes`. The answer is the
last line: JSON with the lines of the plan under `stages`, or with what is wrong under `problem`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from training.engines.tensorflow_keras.keras_model import build_keras_model
from training.engines.tensorflow_keras.pipelining.splitting import cut_stages, split_model
from training.engines.training_job import require_model
from training.errors import GangerError
from training.model_file import load_model_file
from training.plan.stage_table import render_other_counts, render_split
from training.spec.pipeline import PipelineSpec

_FEW_ROWS = 2


def report_split(question: dict[str, Any]) -> list[str]:
    """Return the lines of the plan.

    Raises:
        SpecError: The model file does not do, or the model cannot be split so.
        WorkerError: The model cannot be built for such rows.
    """
    spec = PipelineSpec.model_validate(question["spec"])
    model_spec, train = require_model(spec), spec.train
    assert train.strategy == "pipeline"
    file = load_model_file(model_spec, Path(question["base_dir"]))
    x = np.zeros((_FEW_ROWS, *question["shape"]), question["dtype"] or "float32")
    y = np.zeros(_FEW_ROWS, "int64" if question["classes"] else "float32")
    model = build_keras_model(file, (x, y), train.seed, model_spec.freeze)
    split = split_model(model, train.pipeline, spec.workers)
    cut_stages(model, split.partition)
    return [
        *render_split(split.layers, split.partition, train.pipeline, train.batch_size),
        *render_other_counts(split.layers, spec.workers, train.pipeline, train.batch_size),
    ]


def main() -> None:
    """Answer the question on standard input."""
    try:
        answer: dict[str, Any] = {"stages": report_split(json.load(sys.stdin))}
    except GangerError as error:
        answer = {"problem": str(error)}
    print(f"\n{json.dumps(answer)}", flush=True)


if __name__ == "__main__":
    main()
