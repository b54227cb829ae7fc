"""The trained block as a folder in MLflow's format, which its pyfunc loads: written whole, loaded once to be sure.

MLflow 3 has no flavour of MXNet; a `PythonModel` of ours (`saved_model_code.py`) stands in for it.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import mlflow.pyfunc
import numpy as np

from training.arguments import choose_arguments
from training.checkpoints.tensors import write_tensors
from training.data.dataset import Dataset
from training.engines.mxnet_gluon.feeding import make_array
from training.engines.mxnet_gluon.parameters import iter_parameters, read_parameters
from training.engines.mxnet_gluon.saved_files import DESCRIPTION, SYMBOL, WEIGHTS
from training.engines.mxnet_gluon.symbols import INPUT, trace_symbol
from training.engines.saved_model import (
    check_saved,
    describe_signature,
    find_code,
    gather_code,
    lift,
    list_requirements,
)
from training.model_file import ModelFile
from training.run.atomic import new_folder

_EXAMPLE_ROWS = 2
#: What loading the model needs; named here because MLflow would run the model in a process of its own to find out.
_PACKAGES = ("mxnet", "numpy", "safetensors")
#: Runs where the model is loaded. Never imported here: that would tell MLflow of a model.
_CODE = Path(__file__).with_name("saved_model_code.py")


def save_model(net: Any, dataset: Dataset, file: ModelFile, path: Path, context: Any) -> None:
    """Save a trained block at `path`, in the place of what an earlier try left there.

    Args:
        net: The block.
        dataset: Gives the example of an input.
        file: Where the block's code is; a user's file goes along.
        path: The folder.
        context: Device that features go to.

    Raises:
        WorkerError: What was saved does not load or predicts something else.
        InfrastructureError: The disk is full.
    """
    example = np.array(dataset.x[:_EXAMPLE_ROWS])
    predicted = net(make_array(example, context)).asnumpy()
    with new_folder(path) as folder, tempfile.TemporaryDirectory() as scratch:
        artifacts = write_artifacts(net, example, file, Path(scratch))
        code = Path(scratch) / "code"
        code.mkdir()
        mlflow.pyfunc.save_model(
            str(folder / "model"),
            python_model=str(_CODE),
            artifacts=artifacts,
            signature=describe_signature(example, predicted),
            input_example=example,
            pip_requirements=list_requirements(_PACKAGES),
            code_paths=gather_code(file.path, code) if file.path else None,
        )
        lift(folder / "model", folder)
        check_saved(folder, example, predicted)


def write_artifacts(net: Any, example: np.ndarray[Any, Any], file: ModelFile, folder: Path) -> dict[str, str]:
    """Write parameters, description and, where the block has one, its symbol into `folder`; return their paths."""
    symbol = trace_symbol(net)
    description = {"dtype": str(example.dtype), "input": INPUT, "symbol": symbol is not None}
    if symbol is not None:
        used = {*symbol.list_arguments(), *symbol.list_auxiliary_states()}
        own = {parameter.name: name for name, parameter in iter_parameters(net)}
        description["parameters"] = {name: own[name] for name in sorted(used - {INPUT})}
        (folder / SYMBOL).write_text(symbol.tojson(), encoding="utf-8")
    else:
        description |= {"module": _name_module(file), "params": choose_arguments(file.build, file.params)}
    write_tensors(folder / WEIGHTS, read_parameters(net))
    (folder / DESCRIPTION).write_text(json.dumps(description, indent=2), encoding="utf-8")
    names = {"weights": WEIGHTS, "description": DESCRIPTION} | ({"symbol": SYMBOL} if symbol is not None else {})
    return {key: str(folder / name) for key, name in names.items()}


def _name_module(file: ModelFile) -> str:
    """Return the name by which the model file is imported, here and where it is loaded."""
    if file.path is None:
        return file.entrypoint
    return next(name for name, found in find_code(file.path).items() if found.samefile(file.path))
