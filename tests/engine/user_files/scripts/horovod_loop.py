"""In the manner of Horovod's TensorFlow 2 examples: a loop of one's own, with a distributed gradient tape."""

import os

import horovod.tensorflow as hvd
import keras
import numpy as np
import tensorflow as tf

hvd.init()
data = os.environ["GANGER_DATASET"]
x = np.load(f"{data}/train_x.npy")[hvd.rank() :: hvd.size()]
y = np.load(f"{data}/train_y.npy")[hvd.rank() :: hvd.size()]
dataset = tf.data.Dataset.from_tensor_slices((x, y)).repeat().shuffle(2000, seed=hvd.rank()).batch(32)

keras.utils.set_random_seed(hvd.rank())
model = keras.Sequential([keras.layers.Input((64,)), keras.layers.Dense(64, "relu"), keras.layers.Dense(10)])
measure = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
optimizer = keras.optimizers.Adam(0.003 * hvd.size())


@tf.function
def step(images, labels):
    with tf.GradientTape() as tape:
        loss = measure(labels, model(images, training=True))
    tape = hvd.DistributedGradientTape(tape)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    return loss


for number, (images, labels) in enumerate(dataset.take(60)):
    loss = step(images, labels)
    if number == 0:
        hvd.broadcast_variables(model.variables, root_rank=0)
        hvd.broadcast_variables(optimizer.variables, root_rank=0)
    if number % 20 == 0 and hvd.rank() == 0:
        print(f"step {number}: loss {float(loss):.4f}")

print("loss", float(loss))
print("norm", float(sum(np.square(weight).sum() for weight in model.get_weights())))
