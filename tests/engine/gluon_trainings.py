"""Run by the Python of MXNet's environment: tasks one after another, as `trainings.py` does with Keras.

Strategies of one process are made anew for each task; one of several ranks is made once.
"""

import functools
import json
import shutil
from dataclasses import replace
from pathlib import Path

from gluon_optimizer_probe import resume_each
from gluon_store_probe import receive

from training.engines.mxnet_gluon.evaluation import evaluate
from training.engines.mxnet_gluon.fitting import run_training
from training.engines.mxnet_gluon.runtime import list_versions, name_contexts, prepare_seeds
from training.engines.mxnet_gluon.strategies import start_strategy
from training.engines.training_job import read_training_job
from training.run.rank import RankContext
from training.script.after_import import AfterImport
from training.script.mlflow_runs import keep_model_file_to_one_run


def main():
    ctx = RankContext.read()
    AfterImport(keep_model_file_to_one_run(ctx)).install()
    prepare_seeds(0)

    @functools.cache
    def start(name, devices):
        return start_strategy(name, replace(ctx, devices=devices))

    tasks = ctx.payload["tasks"]
    start(tasks[0]["spec"]["train"]["strategy"], tasks[0]["devices"])
    ctx.ready(versions=list_versions())
    for payload in tasks:
        tell("BEGIN", name=payload["label"])
        try:
            do(replace(ctx, payload=payload), start)
        except Exception as error:  # noqa: BLE001 - what it is, the test says
            step = getattr(error, "step", None)
            tell("FAILED", name=payload["label"], error=type(error).__name__, message=str(error), step=step)
    tell("END")


def do(ctx, start):
    """Do one task; as if a run had been killed after the checkpoint `begin_from`, where that is given."""
    if ctx.payload["task"] == "evaluate":
        evaluate(ctx)
        return
    if ctx.payload["task"] == "receive":
        ctx.result({"kept": receive()})
        return
    if ctx.payload["task"] == "optimizers":
        ctx.result(resume_each())
        return
    begin_from = ctx.payload.get("begin_from")
    if begin_from and ctx.is_chief:
        shutil.copytree(begin_from, Path(ctx.payload["checkpoints"]) / Path(begin_from).name)
    strategy = start(ctx.payload["spec"]["train"]["strategy"], ctx.payload["devices"])
    ctx.ready(replicas=strategy.replicas, devices=name_contexts(strategy.contexts))
    run_training(read_training_job(ctx, strategy))


def tell(word, **values):
    print(f"{word} {json.dumps(values)}", flush=True)


if __name__ == "__main__":
    main()
