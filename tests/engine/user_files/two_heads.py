"""A model file of somebody with a tf.data pipeline: two inputs, two outputs, each with a loss and a metric."""

import keras
import numpy as np
import tensorflow as tf

ROWS, HELD_OUT, CLASSES = 103, 31, 3


def build_model():
    """Return a compiled functional model, whose optimizer clips most gradients."""
    signal, age = keras.Input((6,), name="signal"), keras.Input((1,), name="age")
    hidden = keras.layers.Dense(8, "tanh")(keras.layers.Concatenate()([signal, age]))
    outputs = {"kind": keras.layers.Dense(CLASSES, name="kind")(hidden), "size": keras.layers.Dense(1)(hidden)}
    model = keras.Model({"signal": signal, "age": age}, outputs)
    model.compile(
        keras.optimizers.SGD(0.05, momentum=0.9, clipvalue=0.05),
        loss={"kind": keras.losses.SparseCategoricalCrossentropy(from_logits=True), "size": "mse"},
        metrics={"kind": ["accuracy"], "size": ["mae"]},
    )
    return model


def build_dataset(split, batch_size, seed, shard, shards, repeats=False):
    """Return rows that no batch size divides, of a size that tf.data cannot tell."""
    rows = ROWS if split == "train" else HELD_OUT
    random = np.random.default_rng(len(split))
    signal, age = random.normal(size=(rows, 6)).astype(np.float32), random.normal(size=(rows, 1)).astype(np.float32)
    x = {"signal": signal, "age": age}
    y = {"kind": (signal[:, 0] > 0).astype(np.int64) + (age[:, 0] > 0), "size": signal[:, 1:2] * age}
    dataset = tf.data.Dataset.from_tensor_slices((x, y)).filter(lambda *_: True)
    if split == "train":
        dataset = dataset.shuffle(rows, seed=seed).shard(shards, shard)
    dataset = dataset.batch(batch_size)
    return dataset.repeat() if repeats and split == "train" else dataset
