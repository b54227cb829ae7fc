"""A training script as people have them: several workers, Keras, its own run in MLflow. It knows nothing of Ganger.

What it takes of Ganger are three environment variables, and it runs without them too: where the rows are
(`GANGER_DATASET`), where to leave the model (`GANGER_MODEL_DIR`) and where to go on from (`GANGER_CHECKPOINT_DIR`).
"""

import argparse
import os
from pathlib import Path

import keras
import mlflow
import numpy as np
import tensorflow as tf


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=64, help="rows of a step over all workers")
    parser.add_argument("--rate", type=float, default=0.01)
    parser.add_argument("--data", type=Path, default=os.environ.get("GANGER_DATASET"))
    parser.add_argument("--checkpoints", type=Path, default=os.environ.get("GANGER_CHECKPOINT_DIR", "checkpoints"))
    parser.add_argument("--model", type=Path, default=os.environ.get("GANGER_MODEL_DIR", "model"))
    return parser.parse_args()


def build_model(rate):
    model = keras.Sequential(
        [keras.layers.Input((64,)), keras.layers.Dense(64, activation="relu"), keras.layers.Dense(10)]
    )
    model.compile(
        optimizer=keras.optimizers.Adam(rate),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    return model


def main():
    options = read_arguments()
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    worker = strategy.cluster_resolver.task_id or 0
    x, y = np.load(options.data / "train_x.npy"), np.load(options.data / "train_y.npy")
    dataset = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(len(x), seed=1).batch(options.batch_size)

    with strategy.scope():
        model = build_model(options.rate)

    # Each worker in a folder of its own, side by side: the callback removes its folder at the end.
    callbacks = [keras.callbacks.BackupAndRestore(backup_dir=options.checkpoints / f"worker-{worker}")]
    with mlflow.start_run():
        mlflow.log_params({"epochs": options.epochs, "batch_size": options.batch_size})
        history = model.fit(dataset, epochs=options.epochs, callbacks=callbacks, verbose=2)
        for epoch, accuracy in enumerate(history.history.get("accuracy", []), start=1):
            mlflow.log_metric("train_accuracy", accuracy, step=epoch)
    print("norm of the weights", float(sum(np.square(weight).sum() for weight in model.get_weights())))
    if worker == 0:
        mlflow.tensorflow.save_model(model, options.model)


if __name__ == "__main__":
    main()
