"""A block as a symbol: the graph of its operations, which MXNet runs without the code that made it."""

from __future__ import annotations

from typing import Any

import mxnet as mx
from mxnet import gluon

from training.model_file import ModelFile

INPUT = "data"


def choose_form(net: Any, file: ModelFile) -> str:
    """Return how a block can be saved, in words; asked before training, so that saving does not fail after it (K38)."""
    if trace_symbol(net) is not None:
        return "as a symbol with its parameters: it loads without the code of the model file"
    return f"as its parameters: it loads with the code of {file.entrypoint}, since it is no hybrid block all through"


def trace_symbol(net: Any) -> Any:
    """Return the symbol of a block, with an input called `data`; None for a block that has none.

    The blocks of a hybrid one must all be hybrid, and do no more than combine operations.
    """
    if not isinstance(net, gluon.HybridBlock):
        return None
    try:
        symbol = net(mx.sym.var(INPUT))
    except Exception as error:  # noqa: BLE001 - whatever the user's code raises when it meets a symbol
        print(f"the block has no symbol ({type(error).__name__}: {error})", flush=True)
        return None
    return symbol if isinstance(symbol, mx.sym.Symbol) else None
