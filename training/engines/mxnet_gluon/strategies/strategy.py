"""What the engine needs of a strategy: one class per file implements it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from training.engines.agreement import AddsUp, Vector
from training.engines.mxnet_gluon.feeding import Rows
from training.engines.mxnet_gluon.parameters import Arrays
from training.spec.train import TrainSpec


@dataclass(frozen=True, slots=True)
class Share:
    """What a part of a step's rows came to; MXNet may still be computing it.

    Attributes:
        losses: Of each row, shape (rows,).
        outputs: Of the block, shape (rows, ...).
        labels: Of the rows.
    """

    losses: Any
    outputs: Any
    labels: Any


class Strategy(AddsUp, Protocol):
    """How work is spread over devices and ranks.

    Attributes:
        replicas: Equal parts that a global batch is cut into, over all ranks.
        contexts: Devices of this rank; features go to the first.
        first_replica: Number of the replica whose loss comes first in what `gather_losses` returns.
    """

    replicas: int
    first_replica: int
    contexts: tuple[Any, ...]

    def place(self, net: Any, train: TrainSpec) -> None:
        """Put the parameters of a block where they are trained, the same on all ranks, and hybridize it."""
        ...

    def make_trainers(self, net: Any, optimizer: Any) -> Sequence[Any]:
        """Return the `gluon.Trainer`s that between them update all parameters of a placed block."""
        ...

    def compute(self, net: Any, loss: Any, rows: Rows) -> list[Share]:
        """Compute the gradients of this rank's rows, added up over rows, and return what they came to, in order."""
        ...

    def update(self, trainers: Sequence[Any], global_batch_size: int) -> None:
        """Update the parameters by the gradients of all ranks, divided by the rows of the global batch (K32)."""
        ...

    def gather_losses(self, losses: Vector) -> Vector:
        """Return the mean losses of all replicas from those of this rank, the same on every rank.

        Where ranks do not wait for each other, those of this rank.
        """
        ...

    def settle(self, net: Any) -> None:
        """Make values the same everywhere that each device updates on its own, such as moving averages."""
        ...

    def read_trainers(self, net: Any, trainers: Sequence[Any]) -> Arrays:
        """Return what the trainers remember. Every rank must call it."""
        ...

    def write_trainers(self, net: Any, trainers: Sequence[Any], arrays: Arrays) -> None:
        """Set what the trainers remember."""
        ...
