"""What the engine needs of a strategy: one class per file implements it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
#: Makes the `tf.data.Dataset` that one rank trains on: `(rank, world_size) -> dataset`.
MakeDataset = Callable[[int, int], Any]


class Strategy(Protocol):
    """How work is spread over replicas.

    Attributes:
        replicas: Parts that a global batch is cut into, over all ranks.
    """

    replicas: int

    def scope(self) -> AbstractContextManager[Any]:
        """Return the context in which a model must be built to be trained here."""
        ...

    def distribute(self, make_dataset: MakeDataset) -> Any:
        """Return what `fit` takes as its data, such that step t gets exactly the rows of global batch t."""
        ...

    def gather(self, values: Any) -> Any:
        """Return `values`, shape (k,), of all replicas as shape (replicas, k). Called inside a training step."""
        ...

    def add_up(self, values: Vector) -> Vector:
        """Return the sum of `values` over ranks. Every rank must call it, in one order; it waits for the others."""
        ...

    def needs_own_evaluation_model(self) -> bool:
        """Whether a model built in `scope` cannot evaluate on one rank alone."""
        ...
