"""Lets `hvd.broadcast_variables` and `hvd.DistributedGradientTape` take Keras 3's variables.

Those are no `tf.Variable`, but hold one. Upstream: https://github.com/horovod/horovod/issues/4290.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any


def repair_variables(hvd: Any) -> None:
    """Repair the module `horovod.tensorflow` of this process."""
    broadcast, make_tape = hvd.broadcast_variables, hvd.DistributedGradientTape

    @functools.wraps(broadcast)
    def broadcast_variables(variables: Sequence[Any], *arguments: Any, **options: Any) -> Any:
        return broadcast([unwrap(variable) for variable in variables], *arguments, **options)

    @functools.wraps(make_tape)
    def distributed_gradient_tape(*arguments: Any, **options: Any) -> Any:
        tape = make_tape(*arguments, **options)
        tape.gradient = functools.partial(_differentiate, tape.gradient)
        return tape

    hvd.broadcast_variables = broadcast_variables
    hvd.DistributedGradientTape = distributed_gradient_tape


def unwrap(variable: Any) -> Any:
    """Return the `tf.Variable` of a variable of Keras 3; any other as it is. Imports no Keras itself."""
    is_of_keras = any(base.__module__.startswith("keras.") for base in type(variable).__mro__)
    return variable.value if is_of_keras else variable


def _differentiate(gradient: Any, target: Any, sources: Any, *arguments: Any, **options: Any) -> Any:
    if not isinstance(sources, list | tuple):
        return gradient(target, unwrap(sources), *arguments, **options)
    return gradient(target, [unwrap(source) for source in sources], *arguments, **options)
