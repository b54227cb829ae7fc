"""Asks Horovod and TensorFlow, without our repairs for scripts, for what those repair; one process is enough."""

import json
import os
import re
import signal
import socket
from pathlib import Path

import horovod.tensorflow as hvd
import horovod.tensorflow.keras as hvd_keras
import keras
import numpy as np
import tensorflow as tf

X, Y = np.ones((8, 3), np.float32), np.ones((8, 2), np.float32)


def make_model(optimizer):
    model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(2)])
    model.compile(optimizer, "mse", jit_compile=False)
    return model


def catches_sigterm():
    caught = re.search(r"SigCgt:\s*(\w+)", Path("/proc/self/status").read_text())[1]
    return bool(int(caught, 16) >> (signal.SIGTERM - 1) & 1)


def ask_preemption_notice():
    """TensorFlow must be asked first: it takes no cluster later."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{listener.getsockname()[1]}"
    os.environ["TF_CONFIG"] = json.dumps({"cluster": {"worker": [address]}, "task": {"type": "worker", "index": 0}})
    assert not catches_sigterm()
    tf.distribute.MultiWorkerMirroredStrategy()
    return "SIGTERM is caught" if catches_sigterm() else "works"


def ask_optimizer():
    optimizer = hvd_keras.DistributedOptimizer(keras.optimizers.SGD())
    make_model(optimizer).fit(X, Y, verbose=0)
    return "works" if optimizer._aggregated_gradients else "gradients stay where they are"


def ask_callback(callback):
    make_model("sgd").fit(X, Y, verbose=0, callbacks=[callback])
    return "works"


def ask_broadcast():
    hvd.broadcast_variables(make_model("sgd").variables, root_rank=0)
    return "works"


def ask_gradient_tape():
    model = make_model("sgd")
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(model(X))
    hvd.DistributedGradientTape(tape).gradient(loss, model.trainable_variables)
    return "works"


hvd.init()
callbacks = hvd_keras.callbacks
QUESTIONS = {
    "preemption_notice": ask_preemption_notice,
    "optimizer": ask_optimizer,
    "broadcast_callback": lambda: ask_callback(callbacks.BroadcastGlobalVariablesCallback(0)),
    "average_callback": lambda: ask_callback(callbacks.MetricAverageCallback()),
    "warmup_callback": lambda: ask_callback(callbacks.LearningRateWarmupCallback(initial_lr=0.1)),
    "broadcast_variables": ask_broadcast,
    "gradient_tape": ask_gradient_tape,
}
for name, question in QUESTIONS.items():
    try:
        answer = question()
    except Exception as error:  # noqa: BLE001 - the answer is what it raises
        answer = type(error).__name__
    print("UNREPAIRED", name, answer, flush=True)
