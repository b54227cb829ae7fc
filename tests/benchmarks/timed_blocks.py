"""Run by the engine's Python for `block_step.py`: prints the milliseconds of each step, by kind, as one JSON object."""

import json
import sys
import time

import mxnet as mx
import numpy as np
from mxnet.gluon import nn

from training.engines.mxnet_gluon.gluon_model import FirstValues
from training.engines.mxnet_gluon.runtime import prepare_contexts
from training.engines.mxnet_gluon.strategies import start_strategy
from training.run.rank import RankContext
from training.spec.train import MXNetTrain

LAYERS, UNITS, CLASSES = 8, 1024, 10
WARM_UP = 2


def main():
    options = json.loads(sys.argv[1])
    prepare_contexts(2)
    rows = draw_rows(options["rows"])
    steps = {"one device": make_step("single", 1, 1, rows), "two replicas": make_step("data_parallel", 2, 1, rows)}
    for count in options["micro_batches"]:
        steps[f"two devices, {count} micro-batches"] = make_step("model_parallel", 2, count, rows)
    for step in steps.values():
        for _ in range(WARM_UP):
            step()
    times = {name: [] for name in steps}
    for _ in range(options["rounds"]):
        for name, step in steps.items():
            began = time.perf_counter()
            step()
            times[name].append(1000 * (time.perf_counter() - began))
    print(json.dumps(times))


def draw_rows(count):
    draw = np.random.default_rng(0)
    return draw.normal(size=(count, UNITS)).astype("float32"), draw.integers(CLASSES, size=count)


def make_step(name, devices, micro_batches, rows):
    """Return a function that trains a block of its own for a step, and waits for it."""
    net = nn.HybridSequential()
    net.add(*[nn.Dense(UNITS, activation="relu") for _ in range(LAYERS)], nn.Dense(CLASSES))
    net.initialize(FirstValues())
    net(mx.nd.array(rows[0][:2]))
    strategy = start_strategy(name, RankContext(rank=0, world_size=1, devices=devices))
    options = {"micro_batches": micro_batches} if name == "model_parallel" else {}
    strategy.place(net, MXNetTrain(engine="mxnet", strategy=name, batch_size=len(rows[0]), **options))
    trainers = strategy.make_trainers(net, mx.optimizer.SGD(learning_rate=0.01))
    loss = mx.gluon.loss.SoftmaxCrossEntropyLoss()

    def step():
        strategy.compute(net, loss, rows)
        strategy.update(trainers, len(rows[0]))
        mx.nd.waitall()

    return step


if __name__ == "__main__":
    main()
