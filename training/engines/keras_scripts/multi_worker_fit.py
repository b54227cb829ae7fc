"""Lets Keras 3's own `fit`, `evaluate` and `predict` work under MultiWorkerMirroredStrategy, for scripts.

Two faults keep them from it. `_maybe_symbolic_build` reduces a distributed batch to its mean, which ends with
"ValueError: Attempt to convert a value (PerReplica...)", and has no meaning for labels: here it gets the rows of this
worker. `reduce_per_replica` reduces the logs of a step along axis 0, which scalars do not have: here they are reduced
over workers. Our own engine hands out logs that are reduced already (`reduce_per_replica.py`).
Upstream: https://github.com/keras-team/keras/issues/20585
"""

from __future__ import annotations

from typing import Any


def repair_fit(trainer: Any) -> None:
    """Repair the module `keras.src.backend.tensorflow.trainer` of this process."""
    reduce_any, build = trainer.reduce_per_replica, trainer.TensorFlowTrainer._maybe_symbolic_build
    tree = trainer.tree
    is_multi_worker = trainer._collective_all_reduce_multi_worker

    def reduce_per_replica(values: Any, strategy: Any, reduction: str) -> Any:
        if not is_multi_worker(strategy) or reduction not in ("auto", "mean", "sum"):
            return reduce_any(values, strategy, reduction)
        operation = "SUM" if reduction == "sum" else "MEAN"
        return tree.map_structure(lambda value: strategy.reduce(operation, value, axis=None), values)

    def maybe_symbolic_build(model: Any, iterator: Any = None, data_batch: Any = None) -> None:
        strategy = model._distribute_strategy
        if iterator is None or strategy is None or not is_multi_worker(strategy):
            build(model, iterator=iterator, data_batch=data_batch)
            return
        _, _, batches = next(iter(iterator))
        batch = tree.map_structure(lambda value: strategy.experimental_local_results(value)[0], next(batches))
        build(model, data_batch=batch)

    trainer.reduce_per_replica = reduce_per_replica
    trainer.TensorFlowTrainer._maybe_symbolic_build = maybe_symbolic_build
