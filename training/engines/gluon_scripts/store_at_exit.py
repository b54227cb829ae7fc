"""Ends the key-value stores of a script before Python takes its modules apart.

MXNet ends a store when Python frees it. One that a `gluon.Trainer` uses may be freed too late, or never: then the
threads of the store are torn down as they run, and a script that was done dies of SIGABRT ("terminate called without an
active exception"). Upstream: https://github.com/apache/mxnet/issues/14775.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import weakref
from typing import Any


def end_stores_at_exit(kvstore: Any) -> None:
    """Repair the module `mxnet.kvstore.kvstore` of this process; a store that is freed earlier is left alone."""
    stores: weakref.WeakSet[Any] = weakref.WeakSet()
    make = kvstore.KVStore.__init__

    @functools.wraps(make)
    def init(self: Any, *arguments: Any, **options: Any) -> None:
        make(self, *arguments, **options)
        stores.add(self)

    kvstore.KVStore.__init__ = init

    def end() -> None:
        """Wait for the other workers, as a store does in the end."""
        for store in list(stores):
            kvstore.check_call(kvstore._LIB.MXKVStoreFree(store.handle))
            store.handle = ctypes.c_void_p()  # Python will free it once more, which then does nothing

    atexit.register(end)
