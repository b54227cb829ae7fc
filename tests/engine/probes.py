"""Run by the engine's Python: questions to the engine that need no gang, answered in one process: importing costs.

Prints a line `ANSWER {"name", "value"}` for each function of `QUESTIONS`.
"""

import json
import resource
import sys
from pathlib import Path

import keras
import numpy as np
import pipelining_probes

from training.checkpoints.store import iter_complete
from training.data.dataset import open_dataset
from training.engines.tensorflow_keras import feeding, weights
from training.engines.tensorflow_keras.fitting import run_training
from training.engines.tensorflow_keras.runtime import prepare_runtime
from training.engines.tensorflow_keras.strategies import start_strategy
from training.engines.tensorflow_keras.strategies.replicas import check_replicas
from training.engines.tensorflow_keras.training_job import read_training_job
from training.errors import GangerError
from training.plan.batches import plan_batches
from training.run.rank import RankContext

SETTINGS = json.loads(sys.argv[1])
FOLDER, NUMBERED, ROWS_103 = (Path(SETTINGS[name]) for name in ("folder", "numbered", "rows_103"))
ALONE = RankContext(rank=0, world_size=1)
STEPS = 24  # 103 rows in batches of 12: 8 steps an epoch, 3 epochs
DISK_BYTES = 4_000_000


def feed_from_memory():
    return [feed(rank, 4) for rank in range(4)]


def feed_from_files():
    """Likewise, with rows read from their file one by one, as those of large datasets are."""
    limit, feeding._IN_MEMORY_BYTES = feeding._IN_MEMORY_BYTES, 0
    try:
        return [feed(rank, 4) for rank in range(4)]
    finally:
        feeding._IN_MEMORY_BYTES = limit


def feed(rank, world_size):
    """Return the rows of each step of two epochs; row i of this dataset holds the number i."""
    dataset = open_dataset(NUMBERED)
    batches = plan_batches(dataset.manifest.rows, 12, world_size)
    steps = 2 * batches.steps_per_epoch
    where = {"first_step": 0, "last_step": steps, "rank": rank, "world_size": world_size, "threads": 1}
    fed = feeding.feed_rank(dataset, batches, seed=7, **where)
    return [[int(row) for row in x[:, 0]] for x, y in fed.as_numpy_iterator()]


def replicas_that_are_fewer():
    return catch(lambda: check_replicas(1, 2))


def threads_that_come_late():
    keras.ops.ones(2)  # TensorFlow has started
    return catch(lambda: prepare_runtime(RankContext(rank=0, world_size=1, threads=7), 7))


def strategy_that_is_not_built():
    return catch(lambda: start_strategy("towers", ALONE))


def tpu_that_is_not_there():
    return catch(lambda: start_strategy("tpu", ALONE))


def known_weights():
    variables = [keras.Variable(np.float32([[3, 0], [0, 4]])), keras.Variable(np.float32([12]))]
    return {"sha256": weights.hash_weights(variables), "norm": weights.norm_weights(variables)}


def rows_that_fill_no_step():
    return catch(lambda: train("empty", batch_size=104))


def trained_to_the_end():
    train("whole")
    checkpoints = list(iter_complete(FOLDER / "whole", print))
    return {"steps": [found.meta.step for found in checkpoints], "finite": [is_finite(found) for found in checkpoints]}


def resumed_past_a_damaged_checkpoint():
    """After `trained_to_the_end`: the folder as it was at step 12, whose checkpoint was then cut short."""
    for found in iter_complete(FOLDER / "whole", print):
        if found.meta.step <= 12:
            (FOLDER / "damaged").mkdir(exist_ok=True)
            found.path.rename(FOLDER / "damaged" / found.path.name)
    whole = next(iter_complete(FOLDER / "whole", print)).read()
    (FOLDER / "damaged" / "step-00000012" / "state.safetensors").write_bytes(b"half")
    train("damaged", resume=True)
    again = next(iter_complete(FOLDER / "damaged", print)).read()
    return max(float(np.abs(again[name] - whole[name]).max()) for name in whole)


def disk_that_is_full():
    """The limit on the size of a file stands for the full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (DISK_BYTES, hard))
    try:
        return catch(lambda: train("full", hidden=100_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def train(name, *, resume=False, hidden=8, batch_size=12):
    """Train on 103 rows with a checkpoint every three steps."""
    keeping = {"every_steps": 3, "keep": 100}
    settings = {"engine": "tensorflow", "epochs": 3, "batch_size": batch_size, "checkpoint": keeping}
    model = {"entrypoint": "training.models.mlp", "params": {"hidden": [hidden]}}
    payload = {
        "spec": {"name": "probe", "data": {"source": "digits"}, "model": model, "train": settings},
        "base_dir": str(FOLDER),
        "dataset": str(ROWS_103),
        "model_dir": str(FOLDER / f"{name}-model"),
        "checkpoints": str(FOLDER / name),
        "resume": resume,
    }
    ctx = RankContext(rank=0, world_size=1, payload=payload)
    run_training(read_training_job(ctx, start_strategy("single", ctx)))


def is_finite(checkpoint):
    return all(bool(np.isfinite(array).all()) for array in checkpoint.read().values())


def catch(function):
    try:
        function()
    except GangerError as error:
        return f"{type(error).__name__}: {error}"
    return None


QUESTIONS = (
    feed_from_memory,
    feed_from_files,
    replicas_that_are_fewer,
    threads_that_come_late,
    strategy_that_is_not_built,
    tpu_that_is_not_there,
    known_weights,
    rows_that_fill_no_step,
    trained_to_the_end,
    resumed_past_a_damaged_checkpoint,
    disk_that_is_full,
    *pipelining_probes.QUESTIONS,
)

if __name__ == "__main__":
    pipelining_probes.make_devices()
    prepare_runtime(ALONE, 7)
    for question in QUESTIONS:
        print("ANSWER " + json.dumps({"name": question.__name__, "value": question()}), flush=True)
