"""Run by the engine's Python: times steps of one model in two stages by turns with those of the unsplit model.

    timed_pipeline.py serve INDEX CLUSTER           be a stage, on a core of its own
    timed_pipeline.py time CLUSTER OPTIONS          print milliseconds a step as JSON
    timed_pipeline.py memory CLUSTER OPTIONS        print MiB that each stage grew by in steps of one schedule

CLUSTER and OPTIONS are JSON.
"""

import json
import os
import sys
import time

import keras
import numpy as np
import tensorflow as tf

from training.engines.tensorflow_keras.pipelining.pipelined_step import PipelinedStep
from training.engines.tensorflow_keras.pipelining.placing import place_model
from training.engines.tensorflow_keras.pipelining.splitting import cut_stages, split_model
from training.engines.tensorflow_keras.pipelining.stage_memory import make_peak_reader
from training.engines.tensorflow_keras.runtime import prepare_runtime
from training.engines.tensorflow_keras.serving import start_server
from training.engines.tensorflow_keras.shims.placed_variables import note_optimizer_variables
from training.engines.tensorflow_keras.shims.symbolic_build import build_from_batch
from training.plan.schedules import order_stages
from training.run.rank import RankContext
from training.spec.stages import StagesSpec

SCHEDULES = ("1f1b", "gpipe")
LAYERS, UNITS = 8, 1024
WARM_UP = 2


def serve(index, cluster):
    """Serve until ended. One core is one thread, however many of them TensorFlow has."""
    os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[index]})
    prepare_runtime(RankContext(rank=0, world_size=1), seed=0)
    server = start_server(cluster, "worker", index)
    print("ready", flush=True)
    server.join()


def measure_times(cluster, options):
    """Return the milliseconds of each step, by schedule and micro-batches; `one` is that of the unsplit model."""
    devices = connect(cluster)
    rows = draw_rows(options["rows"])
    steps = {"one": make_step(devices[:1], "gpipe", 1, rows)}
    for schedule in SCHEDULES:
        for micro_batches in options["micro_batches"]:
            steps[f"{schedule} {micro_batches}"] = make_step(devices, schedule, micro_batches, rows)
    for step in steps.values():
        for _ in range(WARM_UP):
            step(*rows)
    times = {name: [] for name in steps}
    for _ in range(options["rounds"]):
        for name, step in steps.items():
            began = time.perf_counter()
            float(step(*rows)[0])
            times[name].append(1000 * (time.perf_counter() - began))
    return times


def measure_memory(cluster, options):
    """Return by how many MiB the largest memory of each stage grew in the steps of one schedule."""
    devices = connect(cluster)
    rows = draw_rows(options["rows"])
    step = make_step(devices, options["schedule"], options["micro_batches"], rows)
    read = make_peak_reader(devices)
    before = read()
    for _ in range(options["rounds"]):
        float(step(*rows)[0])
    return [after - first for after, first in zip(read(), before, strict=True)]


def connect(cluster):
    spec = tf.train.ClusterSpec(cluster)
    tf.config.experimental_connect_to_cluster(spec, job_name="chief", task_index=0, protocol="grpc")
    return [f"/job:worker/task:{index}/device:CPU:0" for index in range(len(cluster["worker"]))]


def draw_rows(count):
    draw = np.random.default_rng(0)
    return draw.normal(size=(count, UNITS)).astype("float32"), draw.normal(size=(count, 1)).astype("float32")


def make_step(devices, schedule, micro_batches, rows):
    """Return a function that trains a model of its own for a step."""
    keras.utils.set_random_seed(7)
    chain = [keras.layers.Dense(UNITS, "relu") for _ in range(LAYERS)]
    model = keras.Sequential([keras.Input((UNITS,)), *chain, keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(1e-4), "mse")
    beside = []
    with note_optimizer_variables(beside):
        build_from_batch(model, (rows[0][:2], rows[1][:2]))
    stages = cut_stages(model, split_model(model, StagesSpec(stages=2), len(devices)).partition)
    place_model(model, stages, devices, beside)
    orders = order_stages(schedule, len(devices), micro_batches)
    return PipelinedStep(model, stages, devices, orders, len(rows[0])).make_function()


if __name__ == "__main__":
    what, *arguments = sys.argv[1:]
    if what == "serve":
        serve(int(arguments[0]), json.loads(arguments[1]))
    prepare_runtime(RankContext(rank=0, world_size=1), seed=0)
    measure = {"time": measure_times, "memory": measure_memory}[what]
    print(json.dumps(measure(*map(json.loads, arguments))), flush=True)
