"""Asks Keras, without our shims, for what they repair; used by `trainings.py` on two ranks."""

import keras
import numpy as np
import tensorflow as tf
from keras.src.backend.tensorflow import trainer

X, Y = np.ones((8, 3), np.float32), np.zeros(8, np.int64)
#: Taken when imported, before the shim takes its place.
REDUCE_PER_REPLICA = trainer.reduce_per_replica


def ask(strategy):
    """Yield what each of the two answered."""
    for name, question in (("reduce_per_replica", reduce_logs), ("symbolic_build", build_from_distributed_batch)):
        try:
            question(strategy)
            answer = "works"
        except Exception as error:  # noqa: BLE001 - the answer is what it raises
            answer = f"{type(error).__name__}: {error}"
        yield {"name": name, "answer": answer}


def reduce_logs(strategy):
    REDUCE_PER_REPLICA({"loss": tf.constant(1.0)}, strategy, "auto")


def build_from_distributed_batch(strategy):
    with strategy.scope():
        model = keras.Sequential([keras.layers.Dense(2)])
        model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    dataset = strategy.distribute_datasets_from_function(lambda _: tf.data.Dataset.from_tensor_slices((X, Y)).batch(4))
    model._maybe_symbolic_build(iterator=trainer.TFEpochIterator(x=dataset, distribute_strategy=strategy))
