"""Lets Horovod's `DistributedOptimizer` and callbacks take what Keras 3 has.

Horovod 0.28.1 knows the optimizers and backend functions of Keras 2 only:
https://github.com/horovod/horovod/issues/4290.
"""

from __future__ import annotations

import functools
from typing import Any

import keras
import tensorflow as tf
from keras.src.trainers.trainer import Trainer

from training.engines.horovod_gradients import Gradients, combine_before_use
from training.engines.keras_scripts.horovod_variables import unwrap

#: Set on an optimizer whose gradients are reduced over ranks.
_MARK = "_ganger_reduces"


def repair_optimizer(impl: Any) -> None:
    """Repair the module `horovod._keras`, which both `horovod.keras` and `horovod.tensorflow.keras` go through."""
    impl.create_distributed_optimizer = create_distributed_optimizer
    compile_any = Trainer.compile

    @functools.wraps(compile_any)
    def compile_without_xla(model: Any, *arguments: Any, **options: Any) -> None:
        compile_any(model, *arguments, **options)
        if getattr(model.optimizer, _MARK, False):
            model.jit_compile = False  # XLA does not know Horovod's operations

    Trainer.compile = compile_without_xla


def repair_callbacks(impl: Any) -> None:
    """Repair the module `horovod._keras.callbacks`."""
    impl.BroadcastGlobalVariablesCallbackImpl.on_batch_end = _broadcast_once
    impl.MetricAverageCallbackImpl._average_metrics_in_place = _average_metrics
    schedule = impl.LearningRateScheduleCallbackImpl
    schedule._adjust_learning_rate = _adjust_learning_rate
    schedule._restore_momentum_if_needed = lambda callback: None
    schedule.on_epoch_end = _log_learning_rate
    impl.LearningRateWarmupCallbackImpl.on_epoch_end = _log_warmed_up


def create_distributed_optimizer(
    *,
    optimizer: Any,
    compression: Any,
    op: Any,
    backward_passes_per_step: int = 1,
    average_aggregated_gradients: bool = False,
    process_set: Any = None,
    **others: Any,
) -> Any:
    """Return `optimizer`, which from now on reduces its gradients over ranks just before it clips and uses them.

    It stays of its own class, so that a saved model loads without Horovod. What is in `others` changes where and in how
    many pieces gradients travel, not what comes of it.
    """
    import horovod.tensorflow as hvd

    sets = {} if process_set is None else {"process_set": process_set}
    factor = 1 if average_aggregated_gradients else backward_passes_per_step
    if backward_passes_per_step > 1:
        optimizer.gradient_accumulation_steps = backward_passes_per_step  # Keras gives the mean of those

    def combine(gradients: Gradients) -> Gradients:
        scaled = [gradient * factor for gradient in gradients]
        combined: Gradients = hvd.grouped_allreduce(scaled, op=op, compression=compression, **sets)
        return combined

    combine_before_use(optimizer, combine)
    setattr(optimizer, _MARK, True)
    optimizer.register_local_var = _refuse_local_variable
    return optimizer


def _refuse_local_variable(variable: Any) -> None:
    raise NotImplementedError(
        f"With Keras 3, the gradients of all variables must be reduced over ranks. Received as local: {variable}."
    )


def _broadcast_once(callback: Any, batch: int, logs: Any = None) -> None:
    """After the first step, when the optimizer's state exists, give all ranks that of one."""
    import horovod.tensorflow as hvd

    if callback.broadcast_done:
        return
    found = [unwrap(variable) for variable in (*callback.model.variables, *callback.model.optimizer.variables)]
    variables = {variable.ref(): variable for variable in found if variable.ref() not in callback._local_vars}
    with tf.device(callback.device):
        hvd.broadcast_variables(list(variables.values()), root_rank=callback.root_rank)
    callback.broadcast_done = True


def _average_metrics(callback: Any, logs: dict[str, Any] | None = None) -> None:
    import horovod.tensorflow as hvd

    for name in sorted(logs or {}):
        logs[name] = float(hvd.allreduce(tf.constant(float(logs[name])), op=hvd.Average, name=f"average.{name}"))  # type: ignore[index]


def _adjust_learning_rate(callback: Any, epoch: float) -> None:
    """Set the rate. Momentum is not corrected with it: Keras 3 has it as a number of the compiled step."""
    callback.model.optimizer.learning_rate = callback.initial_lr * callback.multiplier(epoch)


def _log_learning_rate(callback: Any, epoch: int, logs: dict[str, Any] | None = None) -> None:
    if logs is not None:
        logs["lr"] = _read_rate(callback)


def _log_warmed_up(callback: Any, epoch: int, logs: dict[str, Any] | None = None) -> None:
    import horovod.tensorflow as hvd

    _log_learning_rate(callback, epoch, logs)
    if epoch == callback.end_epoch - 1 and callback.verbose > 0 and hvd.rank() == 0:
        print(f"\nEpoch {epoch + 1}: finished gradual learning rate warmup to {_read_rate(callback):g}.")


def _read_rate(callback: Any) -> float:
    return float(keras.ops.convert_to_numpy(callback.model.optimizer.learning_rate))
