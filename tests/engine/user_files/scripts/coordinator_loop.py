"""In the manner of TensorFlow's parameter-server tutorial: each member of the cluster begins with this file."""

import os

import keras
import mlflow
import numpy as np
import tensorflow as tf

resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
if resolver.task_type in ("worker", "ps"):
    server = tf.distribute.Server(
        resolver.cluster_spec(), job_name=resolver.task_type, task_index=resolver.task_id, protocol="grpc"
    )
    server.join()

data = os.environ["GANGER_DATASET"]
strategy = tf.distribute.ParameterServerStrategy(resolver)
coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)


def make_dataset():
    x, y = np.load(f"{data}/train_x.npy"), np.load(f"{data}/train_y.npy")
    return tf.data.Dataset.from_tensor_slices((x, y)).shuffle(len(x), seed=3).repeat().batch(64)


with strategy.scope():
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.layers.Input((64,)), keras.layers.Dense(64, "relu"), keras.layers.Dense(10)])
    measure = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    optimizer = keras.optimizers.Adam(0.005)
    optimizer.build(model.trainable_variables)


@tf.function
def train_step(iterator):
    def step(images, labels):
        with tf.GradientTape() as tape:
            loss = measure(labels, model(images, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    return strategy.run(step, args=next(iterator))


batches = iter(coordinator.create_per_worker_dataset(make_dataset))
with mlflow.start_run():
    for epoch in range(1, 5):
        losses = [coordinator.schedule(train_step, args=(batches,)) for _ in range(20)]
        coordinator.join()
        loss = float(losses[-1].fetch())
        print(f"epoch {epoch}: loss {loss:.4f}")
        mlflow.log_metric("loss", loss, step=epoch)
print("loss", loss)
