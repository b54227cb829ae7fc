"""In the manner of MXNet's example of distributed training: Gluon's trainer and the key-value store, which updates."""

import os

import mlflow
import mxnet as mx
import numpy as np
from mxnet import autograd, gluon


class Classifier(mlflow.pyfunc.PythonModel):
    """What was trained, in the words of NumPy."""

    def __init__(self, weights):
        self.weights = weights

    def predict(self, context, model_input):
        first, first_bias, second, second_bias = self.weights
        return np.maximum(np.asarray(model_input) @ first.T + first_bias, 0) @ second.T + second_bias


store = mx.kv.create("dist_sync")
data = os.environ["GANGER_DATASET"]
x = np.load(f"{data}/train_x.npy")[store.rank :: store.num_workers][:700]
y = np.load(f"{data}/train_y.npy")[store.rank :: store.num_workers][:700]
batches = gluon.data.DataLoader(gluon.data.ArrayDataset(x, y), 50, shuffle=True)

mx.random.seed(store.rank)
net = gluon.nn.HybridSequential()
net.add(gluon.nn.Dense(64, activation="relu"), gluon.nn.Dense(10))
net.initialize(mx.init.Xavier())
net(mx.nd.zeros((1, 64)))
trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.003}, kvstore=store)
measure = gluon.loss.SoftmaxCrossEntropyLoss()

for epoch in range(4):
    total = 0.0
    for images, labels in batches:
        with autograd.record():
            loss = measure(net(images), labels)
        loss.backward()
        trainer.step(50 * store.num_workers)
        total += float(loss.mean().asscalar())
    mlflow.log_metric("loss", total / len(batches), step=epoch + 1)

weights = [value.data().asnumpy() for value in net.collect_params().values()]
if store.rank == 0:
    mlflow.pyfunc.save_model(os.environ["GANGER_MODEL_DIR"], python_model=Classifier(weights))
print("workers", store.num_workers)
print("role", os.environ["DMLC_ROLE"])
print("loss", total / len(batches))
print("norm", float(sum(np.square(weight).sum() for weight in weights)))
