"""A task for `training.worker` that does what its payload says."""

from __future__ import annotations

import asyncio
import ctypes
import errno
import os
import signal
import sys
import time

from training.errors import Problem, SpecError
from training.run.rank import RankContext


def toy_task(ctx: RankContext) -> None:
    ctx.ready()
    DOES[ctx.payload["does"]](ctx)


def succeed(ctx: RankContext) -> None:
    ctx.result({"attempt": os.environ["GANGER_ATTEMPT"]})


def fail(ctx: RankContext) -> None:
    ctx.step(step=2, epoch=1, metrics={"loss": 0.5})
    raise ValueError("boom")


def fill_disk(ctx: RankContext) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/model")


def import_what_is_not_there(ctx: RankContext) -> None:
    import no_such_module  # type: ignore[import-not-found]  # noqa: F401


def leave(ctx: RankContext) -> None:
    sys.exit(3)


def vanish(ctx: RankContext) -> None:
    os._exit(0)


def leave_by_256(ctx: RankContext) -> None:
    sys.exit(256)


def interrupt(ctx: RankContext) -> None:
    raise KeyboardInterrupt


def cancel(ctx: RankContext) -> None:
    raise asyncio.CancelledError("a future of the user")


def two_mistakes(ctx: RankContext) -> None:
    message = "must be at least 1. Received: 0."
    raise SpecError([Problem(field=field, message=message) for field in ("train.epochs", "train.batch_size")])


def work(ctx: RankContext) -> None:
    print("working", flush=True)
    try:
        time.sleep(600)
    finally:
        print("cleaned up", flush=True)


def fail_when_told_to_end(ctx: RankContext) -> None:
    """As a collective does whose other side has got its SIGTERM a moment earlier."""
    print("working", flush=True)
    try:
        time.sleep(600)
    finally:
        raise ConnectionError("socket closed")


def get_stuck(ctx: RankContext) -> None:
    """As in a native call that no signal interrupts: Python's own handlers never get to run."""
    print("stuck", flush=True)
    mutex = ctypes.create_string_buffer(64)
    libc = ctypes.CDLL(None)
    libc.pthread_mutex_lock(mutex)
    libc.pthread_mutex_lock(mutex)


def end_forked_child(ctx: RankContext) -> None:
    child = os.fork()
    if child == 0:
        time.sleep(600)
    os.kill(child, signal.SIGTERM)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == -signal.SIGTERM
    time.sleep(2.5)  # longer than the patience of a rank that was told to end
    ctx.result({})


def say_rank(ctx: RankContext) -> None:
    print(f"I am {ctx.rank} of {ctx.world_size}", flush=True)


DOES = {
    "succeed": succeed,
    "raise": fail,
    "fill_disk": fill_disk,
    "import": import_what_is_not_there,
    "exit": leave,
    "exit_256": leave_by_256,
    "interrupt": interrupt,
    "cancel": cancel,
    "vanish": vanish,
    "two_mistakes": two_mistakes,
    "work": work,
    "fail_when_told_to_end": fail_when_told_to_end,
    "get_stuck": get_stuck,
    "end_forked_child": end_forked_child,
    "say_rank": say_rank,
}
