"""A file of somebody: an own block, initialized by the user, a rate schedule, a loss, metrics that are no means."""

import mlflow
import mxnet as mx
from mxnet import gluon
from mxnet.gluon import nn

mlflow.set_tracking_uri("http://127.0.0.1:9/nobody-listens-here")  # K39
with mlflow.start_run():
    mlflow.log_param("own", "net")


class Scale(gluon.HybridBlock):
    """Multiplies each feature by a weight that is learned."""

    def __init__(self, features):
        super().__init__()
        self.scale = self.params.get("scale", shape=(1, features), init=mx.init.One())

    def hybrid_forward(self, F, x, scale):
        """Scale."""
        return F.broadcast_mul(x, scale)


def build_model(units=16):
    """Return a block for two classes."""
    net = nn.HybridSequential()
    net.add(Scale(12), nn.Dense(units, activation="tanh"), nn.Dense(2))
    net.initialize(mx.init.Normal(0.3))
    return net


def build_loss(smoothing=0.0):
    """Return the cross-entropy, or that of smoothed labels."""
    if not smoothing:
        return gluon.loss.SoftmaxCrossEntropyLoss()
    soft = gluon.loss.SoftmaxCrossEntropyLoss(sparse_label=False)
    return lambda outputs, labels: soft(outputs, labels.one_hot(2) * (1 - smoothing) + smoothing / 2)


def build_trainer(params, rate=0.1):
    """Return a trainer with a schedule, which halves gradients."""
    schedule = mx.lr_scheduler.FactorScheduler(step=4, factor=0.9, base_lr=rate)
    options = {"momentum": 0.9, "lr_scheduler": schedule, "rescale_grad": 0.5}
    return gluon.Trainer(params, "sgd", options, kvstore="device")


def build_metrics():
    """Return metrics; F1 counts what no mean can bring together."""
    return [mx.metric.F1(name="f1", average="micro"), mx.metric.Accuracy()]
