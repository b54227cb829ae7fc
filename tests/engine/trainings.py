"""Run by the engine's Python: several trainings one after another in the same gang, since starting one costs 10 s.

`payload["trainings"]` is a list of payloads of the task `train`, each with a `name`. A training that fails is told as a line
`FAILED name error message` and the next one begins.
"""

import json

from training.engines.tensorflow_keras.fitting import run_training
from training.engines.tensorflow_keras.runtime import list_devices, list_versions, prepare_runtime
from training.engines.tensorflow_keras.strategies import start_strategy
from training.engines.tensorflow_keras.training_job import read_training_job
from training.errors import GangerError
from training.run.rank import RankContext


def main():
    ctx = RankContext.read()
    trainings = ctx.payload["trainings"]
    train = trainings[0]["spec"]["train"]
    prepare_runtime(ctx, train["seed"])
    strategy = start_strategy(train["strategy"], ctx)
    ctx.ready(versions=list_versions(), replicas=strategy.replicas, devices=list_devices())
    for payload in trainings:
        context = RankContext(rank=ctx.rank, world_size=ctx.world_size, threads=ctx.threads, payload=payload)
        print("BEGIN " + json.dumps({"name": payload["name"]}), flush=True)
        try:
            run_training(read_training_job(context, strategy))
        except GangerError as error:
            failure = {"name": payload["name"], "error": type(error).__name__, "message": str(error)}
            print("FAILED " + json.dumps(failure), flush=True)
    print("END {}", flush=True)


if __name__ == "__main__":
    main()
