"""Asks Keras, without our shims, for what they repair; used by `trainings.py` in a gang."""

import keras
import numpy as np
import tensorflow as tf
from keras.src.backend.tensorflow import trainer

from training.engines.tensorflow_keras.shims.awaited_writes import await_writes

X, Y = np.ones((8, 3), np.float32), np.zeros(8, np.int64)
#: Taken when imported, before the shim takes its place.
REDUCE_PER_REPLICA = trainer.reduce_per_replica


def ask(strategy, names):
    """Yield what each of the questions `names` was answered."""
    for name in names:
        try:
            QUESTIONS[name](strategy)
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


def add_at_once(strategy):
    """Have a worker add to a variable: one operation, or several between which another worker may do so?"""
    with strategy.scope():
        variable = keras.Variable(0, dtype="int64", trainable=False)
    graph = tf.function(lambda: strategy.run(lambda: variable.assign_add(1))).get_concrete_function().graph
    operations = sorted({node.type for node in graph.get_operations() if "Assign" in node.type})
    if operations != ["AssignAddVariableOp"]:
        raise ValueError(f"assign_add is {', '.join(operations)}")


def fit_with_servers(strategy):
    """Train with `fit` on a dataset per worker, as Keras 2 did."""
    with strategy.scope():
        model = keras.Sequential([keras.layers.Dense(2)])
        model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    dataset = tf.data.Dataset.from_tensor_slices((X, Y)).batch(4).repeat()
    model.fit(dataset, epochs=1, steps_per_epoch=2, verbose=0)


def overtake_writes(strategy, rounds=3000, wait=lambda: None):
    """Does a function that is sent to a server find there what was written before?"""
    with tf.device("/job:worker/task:0/device:CPU:0"):
        variables = [tf.Variable(0.0) for _ in range(4)]
    one = tf.function(lambda: tf.add_n([variable.assign(variable + 1.0) for variable in variables]), autograph=False)
    for _ in range(rounds):
        for variable in variables:
            variable.assign(0.0)
        wait()
        if float(one()) != len(variables):
            raise ValueError("a write was overtaken")


def await_them(strategy):
    overtake_writes(strategy, rounds=300, wait=await_writes)


def sum_gradients(strategy):
    """Have replicas whose gradients are 3 and -1 make a step of at most 1: of their sum, or is each clipped?"""
    with strategy.scope():
        variable = keras.Variable(0.0)
        optimizer = keras.optimizers.SGD(1.0, clipvalue=1.0)
        optimizer.build([variable])

    @tf.function
    def step():
        is_first = tf.distribute.get_replica_context().replica_id_in_sync_group == 0
        optimizer.apply([tf.where(is_first, 3.0, -1.0)], [variable])

    strategy.run(step)
    if variable.numpy() != -1:
        raise ValueError(f"gradients of 3 and -1 became {-variable.numpy()}")


def scale_loss(strategy):
    """Have replicas that keep their variables in one place scale the loss."""
    with strategy.scope():
        variable = keras.Variable(0.0, aggregation="mean")
        optimizer = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(1.0))
        optimizer.build([variable])
    strategy.run(tf.function(lambda: optimizer.apply([tf.constant(1.0)], [variable])))


QUESTIONS = {
    "reduce_per_replica": reduce_logs,
    "symbolic_build": build_from_distributed_batch,
    "summed_gradients": sum_gradients,
    "loss_scale": scale_loss,
    "add_at_once": add_at_once,
    "fit_with_servers": fit_with_servers,
    "overtake_writes": overtake_writes,
    "await_them": await_them,
}
