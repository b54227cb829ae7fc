"""Task `serve`: the scheduler or a server of MXNet's key-value store, until the workers are done or it is ended.

Under `dist_async` a server runs the optimizer, so that the user's model file is imported here, too: the optimizer may
be of a class of its own.
"""

from __future__ import annotations

import base64
import ctypes
import os
import pickle
import threading
from pathlib import Path
from typing import Any

import mxnet as mx
from mxnet.base import _LIB, check_call

from training.engines.mxnet_gluon.runtime import list_versions
from training.engines.mxnet_gluon.store_updates import StoreUpdates
from training.model_file import load_model_file
from training.run.rank import RankContext
from training.run.termination import take_sigterm_back
from training.script.after_import import AfterImport
from training.script.mlflow_runs import keep_model_file_to_one_run
from training.spec.pipeline import PipelineSpec

#: What our chief sends to the servers of `dist_async`: that they are to add up at once what no optimizer takes, and the
#: optimizer. Anything else is what MXNet's own trainer sends in a script: an optimizer, pickled.
SUMS = "ganger-sums"
OPTIMIZER = "ganger-optimizer:"
_CONTROLLER = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)


def serve(ctx: RankContext) -> None:
    """Be the member of the store that the environment describes; SIGTERM ends it."""
    os.environ["DMLC_ROLE"] = ctx.role
    server = StoreServer(ctx)
    thread = threading.Thread(target=server.run, name=ctx.role, daemon=True)
    thread.start()
    take_sigterm_back()
    ctx.ready(versions=list_versions())
    print(f"{ctx.role} serves the workers at {os.environ['DMLC_PS_ROOT_URI']}", flush=True)
    server.over.wait()  # not in MXNet's own loop, which no signal handler of Python's gets through
    if server.failure is not None:
        raise server.failure


class StoreServer:
    """A member that serves, in a thread of its own.

    Args:
        ctx: What the launcher made of this process.

    Attributes:
        over: Set when it serves no more.
        failure: What went wrong in code of Python's; None while nothing did.
    """

    def __init__(self, ctx: RankContext) -> None:
        self.over = threading.Event()
        self.failure: BaseException | None = None
        self._ctx = ctx
        self._store = mx.kv.create("dist")
        self._updates = StoreUpdates(int(os.environ["DMLC_NUM_SERVER"]))
        self._controller = _CONTROLLER(self._obey)

    def run(self) -> None:
        """Serve until the workers end the store."""
        try:
            check_call(_LIB.MXKVStoreRunServer(self._store.handle, self._controller, None))
        except Exception as error:  # noqa: BLE001 - the main thread raises it
            self.failure = error
        self.over.set()

    def _obey(self, _: int, body: bytes, __: Any) -> None:
        """Do what a worker sent. MXNet would print what is raised here, and go on."""
        try:
            text = body.decode()
            if text == SUMS:
                self._store._set_updater(self._update)
            elif text.startswith(OPTIMIZER):
                self._take_optimizer(base64.b64decode(text.removeprefix(OPTIMIZER)))
            else:
                self._take_optimizer_of_script(pickle.loads(body))
        except Exception as error:  # noqa: BLE001 - the main thread raises it
            self._fail(error)

    def _take_optimizer(self, pickled: bytes) -> None:
        AfterImport(keep_model_file_to_one_run(self._ctx)).install()
        spec = PipelineSpec.model_validate(self._ctx.payload["spec"])
        if spec.model is not None:
            load_model_file(spec.model, Path(self._ctx.payload["base_dir"]))
        self._updates.set_optimizer(pickle.loads(pickled))

    def _take_optimizer_of_script(self, optimizer: Any) -> None:
        """Have it update what workers push, as MXNet's server does, except that it waits for all of an update.

        MXNet waits for the weights alone: what the optimizer remembers would be read from memory that the network has
        taken back. And what the optimizer raises would be printed.
        """
        updater = mx.optimizer.get_updater(optimizer)

        def update(key: int | str, received: Any, stored: Any) -> None:
            try:
                updater(key, received, stored)
                mx.nd.waitall()
            except Exception as error:  # noqa: BLE001 - the main thread raises it
                self._fail(error)

        self._store._set_updater(update)

    def _update(self, key: int, received: Any, stored: Any) -> None:
        try:
            self._updates(key, received, stored)
        except Exception as error:  # noqa: BLE001 - the main thread raises it
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        self.failure = self.failure or error
        self.over.set()


def render_optimizer(optimizer: Any) -> str:
    """Return what tells servers to run an optimizer."""
    return OPTIMIZER + base64.b64encode(pickle.dumps(optimizer)).decode()
