"""A model file of somebody whose tf.data pipeline is of any kind that the spec asks for."""

import os

import keras
import numpy as np
import tensorflow as tf


def build_model():
    """Return a compiled model."""
    model = keras.Sequential([keras.layers.Flatten(), keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.01), loss="mse")
    return model


def build_dataset(split, batch_size, shard, shards, rows=80, kind="slices"):
    """Return numbered rows, from an array, from a generator, or without an end."""
    if split == "validation":
        return None
    rank = int(os.environ["GANGER_RANK"]) if kind == "differing" else 0
    values = np.arange(rows, dtype=np.float32)[:, np.newaxis] / 100 + rank
    dataset = tf.data.Dataset.from_tensor_slices((values, values))
    if kind == "uneven":
        return dataset.shard(shards, shard).batch(batch_size, drop_remainder=True)
    if kind == "unbatched":
        return dataset.batch(7)
    dataset = dataset.batch(batch_size, drop_remainder=True)
    if kind == "no_dataset":
        return (batch for batch in dataset)
    if kind == "endless":
        return dataset.repeat()
    if kind in ("generator", "endless_generator"):
        endless = kind == "endless_generator"
        passes = iter(int, 1) if endless else (0,)
        return tf.data.Dataset.from_generator(
            lambda: (batch for _ in passes for batch in dataset), output_signature=dataset.element_spec
        )
    return dataset
