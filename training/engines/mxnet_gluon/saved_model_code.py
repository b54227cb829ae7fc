"""Loads a saved Gluon model: MLflow keeps this file with the model and runs it there.

It must import nothing of Ganger: whoever serves a model need not have it.
"""

import importlib
import json
from pathlib import Path
from typing import Any

import mlflow
import mxnet as mx
import numpy as np
from mlflow.pyfunc import PythonModel
from mxnet import gluon
from safetensors.numpy import load_file


class SavedBlock(PythonModel):  # type: ignore[misc]  # MLflow is no package of the checker's
    """A Gluon block: rows in, outputs out, both as NumPy arrays."""

    def load_context(self, context: Any) -> None:
        """Make the block again, from its symbol or by the code that came along."""
        description = json.loads(Path(context.artifacts["description"]).read_text(encoding="utf-8"))
        arrays = load_file(context.artifacts["weights"])
        self.dtype = description["dtype"]
        if description["symbol"]:
            symbol = mx.sym.load_json(Path(context.artifacts["symbol"]).read_text(encoding="utf-8"))
            self.net = gluon.SymbolBlock(symbol, [mx.sym.var(description["input"], dtype=self.dtype)])
            parameters = self.net.collect_params()
            values = {parameters[own]: arrays[name] for own, name in description["parameters"].items()}
        else:
            module = importlib.import_module(description["module"])
            self.net = module.build_model(**description["params"])
            parameters = self.net._collect_params_with_prefix()
            values = {parameters[name]: array for name, array in arrays.items()}
        for parameter, array in values.items():
            parameter.shape, parameter.dtype = array.shape, array.dtype
            parameter.initialize(init=mx.init.Zero(), ctx=mx.cpu(0), force_reinit=True)
            parameter.set_data(mx.nd.array(array, dtype=array.dtype))

    # MLflow warns of a `predict` without annotations; from arrays, and from few types besides, it makes no signature.
    def predict(self, context: Any, model_input: np.ndarray, params: Any = None) -> np.ndarray:
        """Return the outputs of the block for rows."""
        rows = np.asarray(model_input, dtype=self.dtype)
        return np.asarray(self.net(mx.nd.array(rows, dtype=rows.dtype)).asnumpy())


mlflow.models.set_model(SavedBlock())
