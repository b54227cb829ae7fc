"""A model file of somebody with callbacks: it stops early, lowers its rate, logs to MLflow itself, and may be late."""

import os
import time

import keras
import mlflow


def build_model(patience=0):
    """Return a compiled model for two classes that soon learns no more."""
    model = keras.Sequential([keras.layers.Dense(4, activation="tanh"), keras.layers.Dense(1, activation="sigmoid")])
    model.compile(keras.optimizers.Adam(0.05), loss="binary_crossentropy", metrics=["accuracy"])
    return model


def build_callbacks(patience=0):
    """Return callbacks that change the course of the training."""
    mlflow.set_tracking_uri("http://127.0.0.1:9/nobody-listens-here")
    mlflow.set_experiment("an experiment of the model file's own")
    mlflow.tensorflow.autolog()
    mlflow.start_run()
    return [
        keras.callbacks.LambdaCallback(
            on_epoch_end=lambda epoch, logs: mlflow.log_metric("own_loss", logs["loss"], step=epoch),
            on_train_end=lambda logs: be_late(),
        ),
        keras.callbacks.ReduceLROnPlateau(monitor="val_loss", factor=0.5, patience=0, min_delta=0.05, verbose=0),
        keras.callbacks.EarlyStopping(
            monitor="val_loss", min_delta=0.002, patience=patience, restore_best_weights=True
        ),
        keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: print(f"SAW {epoch} {sorted(logs)}")),
    ]


def be_late():
    """Leave the training later than the others, on rank 1 (K20)."""
    if os.environ["GANGER_RANK"] == "1":
        time.sleep(1.5)
        print("LATE", flush=True)
