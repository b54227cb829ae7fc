"""The rows of a training as the engine needs them, wherever they come from; here those that were prepared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from training.data.dataset import Dataset
from training.engines.tensorflow_keras.feeding import feed_rank
from training.errors import GangerError
from training.plan.batches import BatchPlan

#: `(x, y)` or `(x, y, sample_weight)`, each an array or a dict, list or tuple of arrays.
Batch = tuple[Any, ...]
FEW_ROWS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOutRows:
    """What a model is evaluated on, all of it, in its order.

    Attributes:
        x: Features, or a `tf.data.Dataset` of batches.
        y: Labels; None beside a dataset, which gives them.
    """

    x: Any
    y: Any = None

    def count(self) -> int:
        """Return the number of rows; reads a dataset once."""
        if self.y is not None:
            return len(self.x)
        from training.engines.tensorflow_keras.user_dataset import count_rows

        return count_rows(self.x)


class Rows(Protocol):
    """Gives the rows of a training.

    Attributes:
        batches: How they become steps.
        example: A few of them, as NumPy arrays.
        fingerprint: What of them a checkpoint must agree in to be gone on from.
        holds_out: Whether some are held out; the same on every rank.
    """

    @property
    def batches(self) -> BatchPlan: ...  # noqa: D102 - said above
    @property
    def example(self) -> Batch: ...  # noqa: D102
    @property
    def fingerprint(self) -> dict[str, Any]: ...  # noqa: D102
    @property
    def holds_out(self) -> bool: ...  # noqa: D102

    def read_held_out(self) -> HeldOutRows:
        """Return the rows that are held out; for the chief, where there are any."""
        ...

    def feed(self, first_step: int, last_step: int, index: int, count: int) -> Any:
        """Return the `tf.data.Dataset` of part `index` of `count` of the steps from one up to and without another."""
        ...

    def explain(self, step: int) -> GangerError | None:
        """Return why no row followed those of `step`, where that is why the training broke off."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedRows:
    """Those of a prepared dataset, in deterministic global batches (ADR 3).

    Attributes:
        dataset: The prepared dataset.
        batches: How its rows become steps.
        seed: Of the order.
        threads: Threads that reading may use.
    """

    dataset: Dataset
    batches: BatchPlan
    seed: int
    threads: int

    @property
    def example(self) -> Batch:
        """The first few rows."""
        return np.array(self.dataset.x[:FEW_ROWS]), np.array(self.dataset.y[:FEW_ROWS])

    @property
    def fingerprint(self) -> dict[str, Any]:
        """That of the dataset."""
        return {"data": self.dataset.manifest.fingerprint}

    @property
    def holds_out(self) -> bool:
        """Whether the dataset has validation rows."""
        return self.dataset.manifest.validation_rows > 0

    def read_held_out(self) -> HeldOutRows:
        """Return the validation rows."""
        return HeldOutRows(x=self.dataset.validation_x, y=self.dataset.validation_y)

    def feed(self, first_step: int, last_step: int, index: int, count: int) -> Any:
        """Return the slices of the global batches that part `index` of `count` takes."""
        return feed_rank(
            self.dataset,
            self.batches,
            seed=self.seed,
            first_step=first_step,
            last_step=last_step,
            rank=index,
            world_size=count,
            threads=self.threads,
        )

    def explain(self, step: int) -> GangerError | None:
        """Return None: prepared rows do not end."""
        return None
