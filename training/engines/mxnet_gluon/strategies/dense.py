"""Refuses sparse gradients where they would be an error, or worse: Horovod writes beyond the memory of one."""

from __future__ import annotations

from typing import Any

from training.engines.mxnet_gluon.parameters import iter_parameters
from training.errors import spec_error


def check_dense(net: Any, strategy: str) -> None:
    """Check that the gradients of a block have all their rows.

    Raises:
        SpecError: One is sparse.
    """
    sparse = [name for name, parameter in iter_parameters(net) if parameter._grad_stype != "default"]
    if sparse:
        raise spec_error(
            "train.strategy",
            f"must be `single` or `data_parallel` for sparse gradients. Received: {strategy} and {', '.join(sparse)}.",
            "Leave out sparse_grad.",
        )
