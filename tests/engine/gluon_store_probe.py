"""What a server of `dist_async` keeps of an array whose memory is used for something else once it has answered."""

import mxnet as mx
import numpy as np

from training.engines.mxnet_gluon.store_keys import WEIGHT, StateKey, state_key
from training.engines.mxnet_gluon.store_updates import StoreUpdates

NUMBERS = 4
SLOW = 500  # rows of a matrix whose square keeps MXNet busy for some 10 ms


def receive():
    """Return what is kept of an optimizer's two arrays and of a weight; 2 was sent, 3 came into that memory later."""
    updates = StoreUpdates(servers=1)
    updates.set_optimizer(mx.optimizer.Adam())
    matrix = mx.nd.ones((SLOW, SLOW))
    for part in (WEIGHT, 0, 1):
        memory = np.full(NUMBERS, 2.0, np.float32)
        received, stored = mx.nd.from_numpy(memory[:], zero_copy=True), mx.nd.zeros(NUMBERS)
        mx.nd.waitall()
        mx.nd.dot(matrix, matrix)  # what is computed with the array has to wait for this
        updates(state_key(StateKey(0, part, is_write=True), servers=1), received, stored)
        memory[:] = 3.0
    arrays = (*updates._updater.states[0], updates._weights[0])
    return [array.asnumpy().tolist() for array in arrays]
