"""A model file of somebody: touches TensorFlow when imported, has a layer and a rate schedule of its own."""

import keras
import tensorflow as tf

ONES = tf.ones(3)  # K03: TensorFlow has started by now; threads and devices must have been set before
DEVICES = tf.config.list_logical_devices()  # K12


@keras.saving.register_keras_serializable("user")
class Scale(keras.layers.Layer):
    """Multiplies each feature by a weight that is learned."""

    def build(self, shape):
        """Make the weights."""
        self.scale = self.add_weight(shape=(shape[-1],), initializer="ones", name="scale")

    def call(self, inputs):
        """Scale."""
        return inputs * self.scale


def build_model(units=16):
    """Return a compiled model for two classes, with metrics that are no means."""
    model = keras.Sequential(
        [Scale(), keras.layers.Dense(units, activation="tanh"), keras.layers.Dense(1, activation="sigmoid")]
    )
    schedule = keras.optimizers.schedules.ExponentialDecay(0.1, decay_steps=4, decay_rate=0.9)
    model.compile(
        keras.optimizers.SGD(schedule, momentum=0.9),
        loss="binary_crossentropy",
        metrics=[keras.metrics.AUC(name="auc"), keras.metrics.Precision(name="precision")],
    )
    return model
