"""Run by the engine's Python: several tasks one after another in the same gang, since starting one costs 10 s.

`payload["tasks"]` is a list of payloads of the tasks `train` and `evaluate`, each with a `name`. One that fails is told
as a line `FAILED {...}` and the next one begins.
"""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import tensorflow as tf
import upstream

from training.engines.tensorflow_keras.evaluation import evaluate
from training.engines.tensorflow_keras.fitting import run_training
from training.engines.tensorflow_keras.runtime import list_devices, list_versions, prepare_runtime
from training.engines.tensorflow_keras.strategies import start_strategy
from training.engines.tensorflow_keras.training_job import read_training_job
from training.run.rank import RankContext
from training.script.after_import import AfterImport
from training.script.mlflow_runs import keep_model_file_to_one_run


def main():
    ctx = RankContext.read()
    tasks = ctx.payload["tasks"]
    train = tasks[0]["spec"]["train"]
    AfterImport(keep_model_file_to_one_run(ctx)).install()
    prepare_runtime(ctx, train["seed"])
    strategy = start_strategy(train["strategy"], ctx)
    ctx.ready(versions=list_versions(), replicas=strategy.replicas, devices=list_devices())
    tell("THREADS", intra=tf.config.threading.get_intra_op_parallelism_threads(), given=ctx.threads)
    if ctx.payload.get("upstream"):
        for answer in upstream.ask(getattr(strategy, "_strategy", None), ctx.payload["upstream"]):
            tell("UPSTREAM", **answer)
    for payload in tasks:
        tell("BEGIN", name=payload["name"])
        try:
            do(replace(ctx, payload=payload), strategy)
        except Exception as error:  # noqa: BLE001 - what it is, the test says
            step = getattr(error, "step", None)
            tell("FAILED", name=payload["name"], error=type(error).__name__, message=str(error), step=step)
    tell("END")


def do(ctx, strategy):
    """Do one task; as if a run had been killed after the checkpoint `begin_from`, where that is given."""
    if ctx.payload["task"] == "evaluate":
        evaluate(ctx)
        return
    begin_from = ctx.payload.get("begin_from")
    if begin_from and ctx.is_chief:
        shutil.copytree(begin_from, Path(ctx.payload["checkpoints"]) / Path(begin_from).name)
    run_training(read_training_job(ctx, strategy))


def tell(word, **values):
    print(f"{word} {json.dumps(values)}", flush=True)


if __name__ == "__main__":
    main()
