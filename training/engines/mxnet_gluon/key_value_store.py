"""What ranks tell one another through MXNet's key-value store, beside gradients.

Numbers travel as 32-bit floats, of which the store adds those of all ranks up. So that nothing is lost on the way, each
rank writes its 64-bit numbers into rows of its own, as parts of 16 bits, and adds up what it reads itself.
"""

from __future__ import annotations

import mxnet as mx
import numpy as np
from numpy.typing import NDArray

from training.engines.agreement import Vector
from training.engines.mxnet_gluon.serving import SUMS
from training.engines.mxnet_gluon.store_keys import gather_key, weight_key
from training.errors import LaunchError
from training.run.rank import RankContext

_PARTS = 4  # of 16 bits


class StoreRanks:
    """The ranks that meet in one store. Waits, when made, until all have joined.

    Attributes:
        store: MXNet's.

    Args:
        ctx: What the launcher made of this process.
        kind: `dist_sync`, where a push waits for those of all ranks, or `dist_async`, where it is added at once.

    Raises:
        LaunchError: The gang has another size than the plan says.
    """

    def __init__(self, ctx: RankContext, kind: str) -> None:
        self.store = mx.kv.create(kind)
        self._rank, self._size, self._waits = ctx.rank, ctx.world_size, kind == "dist_sync"
        self._known: set[int] = set()
        self._taken = self._copied = 0
        found = int(self.store.num_workers)
        if found != ctx.world_size:
            raise LaunchError(f"the store must count {ctx.world_size} workers. Received: {found}.")
        if not self._waits:
            if ctx.is_chief:
                self.store._send_command_to_servers(0, SUMS)
            self.meet()

    def gather(self, values: Vector) -> NDArray[np.float64]:
        """Return `values` of all ranks, shape (ranks, numbers). Every rank must call it; it waits for the others."""
        count = len(values)
        padded = np.zeros(_pad(count), dtype=np.float64)
        padded[:count] = values
        table = np.zeros((self._size, _PARTS * len(padded)), dtype=np.float32)
        table[self._rank] = padded.view(np.uint16)
        summed = self._sum(gather_key(len(padded)), table)
        return np.ascontiguousarray(summed.astype(np.uint16)).view(np.float64)[:, :count]

    def copy_from_chief(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the chief's `values`. Every rank must call it."""
        self._copied += 1
        own = values if self._rank == 0 else np.zeros_like(values)
        return self._sum(weight_key(self._copied), own)

    def take_keys(self, count: int) -> int:
        """Return the first of `count` numbers that no parameter in the store has had. Every rank must call it."""
        self._taken += count
        return self._taken - count

    def meet(self) -> None:
        """Wait until all ranks are here and everything that they pushed has arrived."""
        mx.nd.waitall()
        self.store._barrier()

    def _sum(self, key: int, own: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the sum of the arrays of all ranks."""
        if key not in self._known:
            self.store.init(key, mx.nd.zeros(own.shape))
            self._known.add(key)
        summed = mx.nd.zeros(own.shape)
        self.store.push(key, mx.nd.array(own))
        if self._waits:  # the sum takes the place of the one before
            self.store.pull(key, out=summed)
            return _read(summed)
        self.meet()
        self.store.pull(key, out=summed)
        self.meet()
        self.store.push(key, mx.nd.array(-own))  # back to zero, exactly: the parts are whole numbers
        return _read(summed)


def _read(array: mx.nd.NDArray) -> NDArray[np.float32]:
    values: NDArray[np.float32] = array.asnumpy()
    return values


def _pad(count: int) -> int:
    """Return the next power of 2: so there are few keys, each with an array that the servers keep."""
    return 1 << max(0, count - 1).bit_length()
