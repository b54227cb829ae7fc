"""Uses MXNet's key-value store as a script does, and has a module keep it, which Python takes apart after the rest.

With the argument `repaired`, our repair for scripts is made first.
"""

import sys
import threading

import mxnet as mx
from mxnet import autograd, gluon

from training.engines.gluon_scripts.store_at_exit import end_stores_at_exit

if sys.argv[1:] == ["repaired"]:
    end_stores_at_exit(mx.kvstore.kvstore)
net = gluon.nn.Dense(2, in_units=4)
net.initialize()
trainer = gluon.Trainer(net.collect_params(), "sgd", kvstore=mx.kv.create("dist_sync"))
with autograd.record():
    loss = net(mx.nd.ones((2, 4)))
loss.backward()
trainer.step(2)
threading.kept_trainer = trainer
print("done", flush=True)
