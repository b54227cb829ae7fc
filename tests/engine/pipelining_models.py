"""Models for the questions of `pipelining_probes.py`: some that can be trained in stages, and `REFUSED`."""

import keras
import numpy as np
import tensorflow as tf

ROWS = 10
layers = keras.layers


def make_rich_model():
    keras.utils.set_random_seed(7)
    given = keras.Input((3,), dtype="int32")
    tokens = layers.Embedding(9, 4, name="tokens")(given)
    wide = layers.Dense(8, "relu", kernel_regularizer="l2", name="wide")(tokens)
    narrow = layers.Dense(4, name="narrow")(wide)
    block = layers.LayerNormalization(name="norm")(layers.Add(name="add")([tokens, narrow]))
    flat = layers.Flatten(name="flat")(block)
    made = layers.Dense(2, bias_regularizer="l1", name="made")(layers.Dense(6, "tanh", name="last")(flat))
    model = keras.Model(given, made)
    optimizer = keras.optimizers.Adam(0.01, weight_decay=0.01, global_clipnorm=1.0, use_ema=True, ema_momentum=0.9)
    model.compile(optimizer, keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="sum"))
    return model


def make_normalising_model():
    keras.utils.set_random_seed(7)
    return compile_chain(layers.Dense(4), layers.BatchNormalization(), layers.Dense(1))


def make_scaled_model():
    keras.utils.set_random_seed(7)
    model = compile_chain(layers.Dense(4, kernel_regularizer="l2"), layers.Dense(1, kernel_regularizer="l2"))
    model.compile(keras.optimizers.SGD(0.1, loss_scale_factor=64.0), "mse")
    return model


def make_dropping_model():
    keras.utils.set_random_seed(7)
    return compile_chain(layers.Dense(16), layers.Dropout(0.5, seed=11), layers.Dense(1))


def draw_tokens():
    draw = np.random.default_rng(5)
    return draw.integers(0, 9, (ROWS, 3)).astype("int32"), draw.integers(0, 2, (ROWS,))


def compile_chain(*chain, loss="mse"):
    return compile_model(keras.Sequential([keras.Input((4,)), *chain]), loss)


def compile_model(model, loss="mse"):
    model.compile(keras.optimizers.SGD(0.1), loss)
    return model


def make_masking():
    return compile_chain(layers.Embedding(5, 4, mask_zero=True), layers.LSTM(3), layers.Dense(1))


def make_reusing():
    given, dense = keras.Input((4,)), layers.Dense(4, name="again")
    return compile_model(keras.Model(given, layers.Dense(1)(dense(dense(given)))))


class Own(keras.Model):
    def __init__(self):
        super().__init__()
        self.inner = layers.Dense(1)

    def call(self, inputs):
        return self.inner(inputs)


class OwnStep(keras.Sequential):
    def train_step(self, data):
        return super().train_step(data)


class Losing(keras.layers.Layer):
    def call(self, inputs):
        self.add_loss(keras.ops.sum(inputs))
        return inputs


class OwnCall(keras.Model):
    def call(self, inputs):
        return 2 * super().call(inputs)


class Again(keras.layers.Layer):
    """Multiplies by the weights of another layer."""

    def __init__(self, layer, **how):
        super().__init__(**how)
        self.layer = layer

    def call(self, inputs):
        return keras.ops.matmul(inputs, keras.ops.transpose(self.layer.kernel))


class Noting(keras.layers.Layer):
    """Keeps the graph in which it was called last."""

    def call(self, inputs):
        self.graph = tf.compat.v1.get_default_graph()
        return inputs


def make_subclassed():
    return compile_model(Own())


def make_two_inputs():
    left, right = keras.Input((2,), name="left"), keras.Input((2,), name="right")
    return compile_model(keras.Model([left, right], layers.Dense(1)(layers.Concatenate()([left, right]))))


def make_scaling():
    model = compile_chain(layers.Dense(4), layers.Dense(1))
    model.compile(keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD()), "mse")
    return model


def make_own_call():
    given = keras.Input((4,))
    return compile_model(OwnCall(given, layers.Dense(1)(layers.Dense(4)(given))))


def make_tied():
    first = layers.Dense(4, name="first")
    return compile_chain(first, Again(first, name="again"))


def make_reading():
    """Like `make_tied`, but no layer knows of it."""
    first = layers.Dense(4, name="first")
    again = layers.Lambda(lambda given: given @ tf.transpose(first.kernel), name="again")
    return compile_chain(first, again, layers.Dense(1))


def make_ignoring():
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=-1)
    return compile_chain(layers.Dense(4), layers.Dense(3), loss=loss)


def whole_batch(labels, outputs):
    return keras.ops.sqrt(keras.ops.mean(keras.ops.square(labels - outputs)))


def by_other_rows(labels, outputs):
    return keras.ops.square(labels - outputs) / keras.ops.max(outputs)


def make_with_loss(loss):
    return lambda: compile_chain(layers.Dense(4), layers.Dense(1), loss=loss)


def make_two_chains():
    return compile_chain(layers.Dense(4, name="first"), layers.Dense(4, name="second"), layers.Dense(1, name="third"))


REFUSED = {
    "masks": make_masking,
    "used twice": make_reusing,
    "subclass": make_subclassed,
    "two inputs": make_two_inputs,
    "own step": lambda: compile_model(OwnStep([keras.Input((4,)), layers.Dense(4), layers.Dense(1)])),
    "scaled loss": make_scaling,
    "own loss": lambda: compile_chain(Losing(name="losing"), layers.Dense(1)),
    "penalty": lambda: compile_chain(layers.Dense(4, activity_regularizer="l2", name="held"), layers.Dense(1)),
    "spectral": lambda: compile_chain(layers.SpectralNormalization(layers.Dense(4), name="held"), layers.Dense(1)),
    "no loss": make_with_loss(None),
    "no mean": make_with_loss(keras.losses.MeanSquaredError(None)),
    "whole batch": make_with_loss(whole_batch),
    "dice": make_with_loss(keras.losses.Dice()),
    "other rows": make_with_loss(by_other_rows),
    "ignored": make_ignoring,
    "own call": make_own_call,
    "tied": lambda: (make_tied(), (1, 1)),
    "reading": lambda: (make_reading(), (1, 2)),
    "whole numbers": lambda: (compile_chain(layers.Discretization([0.5]), layers.Embedding(2, 1)), (1, 1)),
    "sum": lambda: (make_two_chains(), (2, 2)),
    "block": lambda: (make_rich_model(), (3, 5)),
    "one layer": lambda: compile_chain(layers.Dense(1, name="only")),
}
