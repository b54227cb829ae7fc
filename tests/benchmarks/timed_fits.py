"""Run by the engine's Python for `step_time.py`: prints milliseconds a step of each kind of fit as one JSON object."""

import itertools
import json
import statistics
import sys
import time
from pathlib import Path

import keras
import numpy as np

from training.engines.tensorflow_keras.fitting import fit
from training.engines.tensorflow_keras.keras_model import build_keras_model
from training.engines.tensorflow_keras.resuming import restore_progress
from training.engines.tensorflow_keras.runtime import prepare_runtime
from training.engines.tensorflow_keras.strategies import start_strategy
from training.engines.tensorflow_keras.training_job import read_training_job
from training.engines.tensorflow_keras.validating import Validator
from training.run.rank import RankContext

BATCH = 64


class Listener(RankContext):
    """Notes when the training told of an epoch, and how long its steps took."""

    seconds: list = []
    told: list = []

    def epoch(self, **fields):
        super().epoch(**fields)
        self.seconds.append(fields["seconds"])
        self.told.append(time.monotonic())


class Stopwatch(keras.callbacks.Callback):
    def on_train_begin(self, logs=None):
        self.seconds = []

    def on_epoch_begin(self, epoch, logs=None):
        self.began = time.monotonic()

    def on_epoch_end(self, epoch, logs=None):
        self.seconds.append(time.monotonic() - self.began)


def main():
    dataset, folder, epochs, rounds = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]) + 1, int(sys.argv[4])
    ctx = Listener(rank=0, world_size=1, threads=1, payload=describe(dataset, folder, epochs))
    prepare_runtime(ctx, 7)
    job = read_training_job(ctx, start_strategy("single", ctx))
    kinds = {"plain": [], "ours": [], "ours, a checkpoint an epoch": []}
    for _ in range(rounds):
        kinds["plain"] += time_plain(job, epochs)
        steps, whole = time_ours(job)
        kinds["ours"] += steps
        kinds["ours, a checkpoint an epoch"] += whole
    per_epoch = job.batches.steps_per_epoch
    print(json.dumps({kind: 1000 * statistics.median(seconds) / per_epoch for kind, seconds in kinds.items()}))


def describe(dataset, folder, epochs):
    train = {"engine": "tensorflow", "epochs": epochs, "batch_size": BATCH}
    model = {"entrypoint": "training.models.mlp"}
    return {
        "spec": {"name": "bench", "data": {"source": "digits"}, "model": model, "train": train},
        "base_dir": str(folder),
        "dataset": str(dataset),
        "model_dir": str(folder / "model"),
        "checkpoints": str(folder / "checkpoints"),
        "resume": False,
    }


def time_plain(job, epochs):
    """Return the seconds of each epoch but the first of `keras.Model.fit`."""
    model = build_keras_model(job.file, job.dataset, 7)
    rows = job.batches.steps_per_epoch * BATCH
    x, y = np.array(job.dataset.x[:rows]), np.array(job.dataset.y[:rows])
    watch = Stopwatch()
    model.fit(x, y, batch_size=BATCH, epochs=epochs, callbacks=[watch], verbose=0)
    return watch.seconds[1:]


def time_ours(job):
    """Return the seconds of the steps of each epoch but the first, and those from one epoch's end to the next's."""
    model = build_keras_model(job.file, job.dataset, 7)
    job.ctx.seconds.clear()
    job.ctx.told.clear()
    fit(job, model, restore_progress(job, model), Validator(job, model))
    told = job.ctx.told
    return job.ctx.seconds[1:], [later - earlier for earlier, later in itertools.pairwise(told)]


if __name__ == "__main__":
    main()
