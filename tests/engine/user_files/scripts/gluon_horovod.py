"""In the manner of Horovod's example for MXNet's Gluon; what it logs to MLflow, it logs on every rank."""

import os

import horovod.mxnet as hvd
import mlflow
import mxnet as mx
import numpy as np
from mxnet import autograd, gluon

hvd.init()
data = os.environ["GANGER_DATASET"]
x = np.load(f"{data}/train_x.npy")[hvd.rank() :: hvd.size()][:700]
y = np.load(f"{data}/train_y.npy")[hvd.rank() :: hvd.size()][:700]
batches = gluon.data.DataLoader(gluon.data.ArrayDataset(x, y), 50, shuffle=True)

mx.random.seed(hvd.rank())
net = gluon.nn.HybridSequential()
net.add(gluon.nn.Dense(64, activation="relu"), gluon.nn.Dense(10))
net.initialize(mx.init.Xavier())
net(mx.nd.zeros((1, 64)))
parameters = net.collect_params()
hvd.broadcast_parameters(parameters, root_rank=0)
trainer = hvd.DistributedTrainer(parameters, "adam", {"learning_rate": 0.0015 * hvd.size()})
measure = gluon.loss.SoftmaxCrossEntropyLoss()

mlflow.set_tracking_uri("http://127.0.0.1:9/nobody-listens-here")
mlflow.set_experiment("of-the-script")
with mlflow.start_run():
    mlflow.log_param("classes", 10)
    for epoch in range(4):
        total = 0.0
        for images, labels in batches:
            with autograd.record():
                loss = measure(net(images), labels)
            loss.backward()
            trainer.step(50)
            total += float(loss.mean().asscalar())
        mlflow.log_metric("loss", total / len(batches), step=epoch + 1)
    mlflow.log_metric("of_rank", hvd.rank())

if hvd.rank() == 0:
    net.save_parameters(f"{os.environ['GANGER_CHECKPOINT_DIR']}/net.params")
print("loss", total / len(batches))
print("norm", sum(float((value.data() ** 2).sum().asscalar()) for value in parameters.values()))
