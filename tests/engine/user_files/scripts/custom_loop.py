"""In the manner of TensorFlow's custom training loops: `strategy.run` on a distributed dataset. A run per rank."""

import os

import keras
import mlflow
import numpy as np
import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
data = os.environ["GANGER_DATASET"]
BATCH = 64


def make_dataset(context):
    x, y = np.load(f"{data}/train_x.npy"), np.load(f"{data}/train_y.npy")
    rows = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(len(x), seed=3).repeat()
    rows = rows.shard(context.num_input_pipelines, context.input_pipeline_id)
    return rows.batch(context.get_per_replica_batch_size(BATCH))


with strategy.scope():
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.layers.Input((64,)), keras.layers.Dense(64, "relu"), keras.layers.Dense(10)])
    measure = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")
    optimizer = keras.optimizers.Adam(0.005)
    optimizer.build(model.trainable_variables)
batches = iter(strategy.distribute_datasets_from_function(make_dataset))


@tf.function
def train_step(iterator):
    def step(rows):
        images, labels = rows
        with tf.GradientTape() as tape:
            losses = measure(labels, model(images, training=True))
            loss = tf.nn.compute_average_loss(losses, global_batch_size=BATCH)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    return strategy.reduce(tf.distribute.ReduceOp.SUM, strategy.run(step, args=(next(iterator),)), axis=None)


with mlflow.start_run():
    for number in range(1, 81):
        loss = float(train_step(batches))
        if number % 20 == 0:
            print(f"step {number}: loss {loss:.4f}")
            mlflow.log_metric("loss", loss, step=number)
print("replicas", strategy.num_replicas_in_sync)
print("loss", loss)
print("norm", float(sum(np.square(weight).sum() for weight in model.get_weights())))
