"""What the engine needs of a strategy: one class per file implements it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from training.engines.tensorflow_keras.rows import Batch
from training.errors import spec_error
from training.spec.train import TrainSpec

if TYPE_CHECKING:
    from training.engines.tensorflow_keras.gang_callbacks import GangCallbacks

Vector = NDArray[np.float64]
#: Makes the `tf.data.Dataset` that one replica trains on: `(index, replicas) -> dataset`.
MakeDataset = Callable[[int, int], Any]


class Strategy(Protocol):
    """How work is spread over replicas.

    Attributes:
        replicas: Parts that a global batch is cut into, over all ranks.
        updates_per_step: How often the optimizer is applied in a step.
    """

    replicas: int
    updates_per_step: int

    def scope(self) -> AbstractContextManager[Any]:
        """Return the context in which a model must be built to be trained here."""
        ...

    def adopt(self, model: Any, train: TrainSpec, example: Batch) -> None:
        """Make a model that was built in `scope` ready to be trained by all ranks together.

        Args:
            model: Compiled and built.
            train: How.
            example: A few rows, as NumPy arrays.
        """
        ...

    def fit(
        self,
        model: Any,
        make_dataset: MakeDataset,
        callbacks: GangCallbacks,
        *,
        initial_epoch: int,
        epochs: int,
        steps_per_epoch: int,
    ) -> None:
        """Train `model` such that step t takes exactly the rows of global batch t, and call back as Keras does.

        Args:
            model: Built in `scope` and adopted.
            make_dataset: Gives the rows of the steps, from the first one that is to be trained.
            callbacks: Hear of every step, with the losses of its parts under `LOSSES`, in the order of the steps.
            initial_epoch: From 0.
            epochs: Epochs that are trained when this returns, those before `initial_epoch` among them.
            steps_per_epoch: Steps of each of these epochs.
        """
        ...

    def add_up(self, values: Vector) -> Vector:
        """Return the sum of `values` over ranks. Every rank must call it, in one order; it waits for the others."""
        ...

    def pool(self, values: Vector) -> Vector:
        """Return a metric's sum over all rows from what this rank reads of it; all ranks must call it, in one order."""
        ...

    def portion(self, values: Vector) -> Vector:
        """Return what each rank must set a metric's variable to for the sum over all rows to be `values`."""
        ...

    def unite_metrics(self, model: Any) -> dict[str, float]:
        """Return metrics of the epoch over the rows of all ranks, where reading them tells of this rank's rows only."""
        ...

    def settle(self, model: Any) -> None:
        """Make variables the same on all ranks that each rank updates on its own, such as moving averages."""
        ...

    def needs_own_evaluation_model(self) -> bool:
        """Whether a model built in `scope` cannot evaluate on one rank alone."""
        ...


class SynchronousStrategy(Strategy, Protocol):
    """One under which Keras' own `fit` works.

    Attributes:
        loss_scale: What Keras divides the loss of a replica by, so that gradients can be summed.
    """

    loss_scale: int

    def distribute(self, make_dataset: MakeDataset) -> Any:
        """Return what `fit` takes as its data."""
        ...

    def gather(self, values: Any) -> Any:
        """Return `values`, shape (k,), of all replicas as shape (replicas, k). Called inside a training step."""
        ...


class KnownToTensorFlow:
    """What strategies have in common whose replicas TensorFlow itself keeps together."""

    def adopt(self, model: Any, train: TrainSpec, example: Batch) -> None:
        """Do nothing to the model: gradients are added up already.

        Raises:
            SpecError: Its optimizer accumulates gradients, which Keras 3 does in a branch of the graph, where
                TensorFlow's strategies cannot meet ("merge_call called while defining a new graph").
        """
        optimizer = getattr(model.optimizer, "inner_optimizer", model.optimizer)
        steps = optimizer.gradient_accumulation_steps
        if steps:
            raise spec_error(
                "model.entrypoint",
                f"must not accumulate gradients under strategy {train.strategy}. "
                f"Received: an optimizer with gradient_accumulation_steps={steps}.",
                "Use the strategy single or horovod, or a larger train.batch_size.",
            )

    def pool(self, values: Vector) -> Vector:
        """Return `values`: reading a metric adds up over replicas."""
        return values

    def portion(self, values: Vector) -> Vector:
        """Return `values`: setting a metric divides it among replicas."""
        return values

    def unite_metrics(self, model: Any) -> dict[str, float]:
        """Return nothing: Keras reads them so."""
        return {}

    def settle(self, model: Any) -> None:
        """Do nothing: there is one value of each."""


class OneProcess(KnownToTensorFlow):
    """What strategies have in common that keep all their replicas in one process."""

    def add_up(self, values: Vector) -> Vector:
        """Return `values`: there is one rank."""
        return values
