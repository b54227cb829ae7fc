"""Has what a chief writes to variables on its servers arrive there before a function that uses them.

TensorFlow sends single operations to a server by a stream and goes on without an answer, though the context calls
itself synchronous. The parts of a `tf.function` are sent by another call and may overtake them. So a pipeline's metrics
that were reset at the begin of an epoch began with the sums of the one before now and then: an accuracy was 1.683. On 2
busy cores, 437 of 1500 functions used a value from before the last write; no write was overtaken that was waited for.
Upstream: tensorflow/core/common_runtime/eager/eager_executor.cc, `RunItem`; distributed_runtime/eager/
cluster_function_library_runtime.cc, `RunComponentFunctionAsync`.
"""

from __future__ import annotations

from tensorflow.python.eager import context


def await_writes() -> None:
    """Return when all operations that were sent to servers are done."""
    context.async_wait()
