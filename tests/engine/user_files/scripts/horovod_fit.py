"""In the manner of Horovod's Keras examples: each rank reads its part, rank 0 saves. Ignores ranks in MLflow."""

import os
import sys

import horovod.tensorflow.keras as hvd
import keras
import mlflow
import numpy as np

hvd.init()
data = os.environ["GANGER_DATASET"]
x = np.load(f"{data}/train_x.npy")[hvd.rank() :: hvd.size()]
y = np.load(f"{data}/train_y.npy")[hvd.rank() :: hvd.size()]

keras.utils.set_random_seed(hvd.rank())  # the broadcast must make the ranks equal
model = keras.Sequential([keras.layers.Input((64,)), keras.layers.Dense(64, "relu"), keras.layers.Dense(10)])
optimizer = hvd.DistributedOptimizer(keras.optimizers.Adam(0.003 * hvd.size()), backward_passes_per_step=1)
model.compile(
    optimizer=optimizer,
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
)
callbacks = [
    hvd.callbacks.BroadcastGlobalVariablesCallback(0),
    hvd.callbacks.MetricAverageCallback(),
    hvd.callbacks.LearningRateWarmupCallback(initial_lr=0.003 * hvd.size(), warmup_epochs=2, verbose=1),
]

mlflow.set_tracking_uri("http://127.0.0.1:9/nobody-listens-here")
mlflow.set_experiment("an experiment of the script's own")
with mlflow.start_run(run_name="first"):
    history = model.fit(
        x, y, batch_size=32, epochs=int(sys.argv[1]), callbacks=callbacks, verbose=2 if hvd.rank() == 0 else 0
    )
with mlflow.start_run():  # a second one, which is to be the same
    for epoch, accuracy in enumerate(history.history["accuracy"], start=1):
        mlflow.log_metric("train_accuracy", accuracy, step=epoch)
    mlflow.log_metric("of_rank", hvd.rank())

print("accuracies", [f"{value:.6f}" for value in history.history["accuracy"]])
print("rates", [f"{value:.6f}" for value in history.history["lr"]])
print("norm", float(sum(np.square(weight).sum() for weight in model.get_weights())))
if hvd.rank() == 0:
    mlflow.tensorflow.save_model(model, os.environ["GANGER_MODEL_DIR"])
