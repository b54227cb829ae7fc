"""Entry point of a rank: `python -m training.worker`. Reads what to do, does it, explains how it ended.

Runs in any of the environments. Everything heavy is imported by the task that needs it.
"""

from __future__ import annotations

import errno
import faulthandler
import importlib
import os
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import NoReturn

from training import settings
from training.errors import (
    EXIT_CANCELLED,
    EXIT_OK,
    EXIT_SPEC,
    EXIT_TEMPORARY,
    EXIT_USER_CODE,
    GangerError,
    PreflightError,
    SpecError,
)
from training.policy.failure import name_error
from training.run.folder import JobFolder
from training.run.rank import RankContext
from training.run.termination import Terminated, end_on_sigterm, is_told_to_end
from training.run.turn import wait_for_turn
from training.script.after_import import AfterImport
from training.script.mlflow_runs import keep_model_file_to_one_run

#: Task to the module that has a function of that name.
TASKS = {
    "prepare_data": "training.data.prepare",
    "register_model": "training.tracking.registry",
    "check_tracking": "training.tracking.tasks",
    "close_tracking": "training.tracking.tasks",
    "fetch_model": "training.tracking.fetch",
}
#: Engine to the package that has the `ENGINE_TASKS`. No module may be called like the framework that it uses.
ENGINES = {
    "tensorflow": "training.engines.tensorflow_keras",
    "horovod": "training.engines.tensorflow_keras",
    "mxnet": "training.engines.mxnet_gluon",
}
ENGINE_TASKS = ("train", "evaluate", "serve")
#: Tasks in which code of the user's runs, or is loaded with a model.
_USER_CODE_TASKS = ("prepare_data", "train", "evaluate")

_OUR_FOLDER = Path(__file__).resolve().parent
_DISK_FULL = (errno.ENOSPC, errno.EDQUOT)


def main() -> int:
    """Run the task of this rank, and return the exit code; a failure and SIGTERM end the process at once."""
    faulthandler.enable()
    faulthandler.register(
        signal.SIGUSR1, all_threads=True
    )  # the supervisor asks for stacks before it ends a stalled gang
    end_on_sigterm()
    ctx = RankContext.read()
    try:
        wait_for_turn(JobFolder(Path(os.environ[settings.JOB_DIR])), ctx.turn, ctx.heartbeat)
        run_task(ctx)
        ctx.done()
    except Terminated:
        _leave(EXIT_CANCELLED)
    except BaseException as error:  # noqa: BLE001 - the border: whatever it is, the supervisor is told
        if is_told_to_end():
            print(f"after SIGTERM: {name_error(error)}: {error}", file=sys.stderr, flush=True)
            _leave(EXIT_CANCELLED)
        _end_failed(ctx, error)
    return EXIT_OK


def run_task(ctx: RankContext) -> None:
    """Run the task that the payload names.

    Raises:
        PreflightError: There is no such task or engine.
    """
    if ctx.payload.get("task") in _USER_CODE_TASKS and not ctx.service:
        AfterImport(keep_model_file_to_one_run(ctx)).install()
    find_task(ctx)(ctx)


def find_task(ctx: RankContext) -> Callable[[RankContext], None]:
    """Return the function of the task that the payload names, its module imported now.

    Raises:
        PreflightError: There is no such task or engine.
    """
    task = "serve" if ctx.service else ctx.payload.get("task")
    of_engine = task in ENGINE_TASKS
    module = _find(ENGINES, ctx.payload.get("engine"), "engine") if of_engine else _find(TASKS, task, "task")
    ctx.heartbeat(f"importing {module}")
    function: Callable[[RankContext], None] = getattr(importlib.import_module(module), str(task))
    return function


def exit_code_for(error: BaseException) -> int:
    """Return what a rank that ends with `error` exits with.

    >>> exit_code_for(ModuleNotFoundError("no module nets")), exit_code_for(ValueError("boom"))
    (78, 70)
    """
    match error:
        case GangerError():
            return error.exit_code
        case ImportError() | SyntaxError():
            return EXIT_SPEC  # a retry would find the same
        case OSError() if error.errno in _DISK_FULL:
            return EXIT_TEMPORARY
        case SystemExit(code=int(code)) if code % 256:
            return code % 256  # what the kernel keeps of it
        case _:
            return EXIT_USER_CODE


def render_traceback(error: BaseException) -> str:
    """Return the traceback of `error` from the user's code on.

    Nothing for errors that we raise ourselves, all the way down in our own code: their text says what there is to say.
    """
    if isinstance(error, SpecError | PreflightError):
        return ""
    if isinstance(error, GangerError) and _is_all_ours(error.__traceback__):
        if error.__cause__ is None:
            return ""
        error = error.__cause__  # that we raised another in its place tells nobody anything
    return "".join(traceback.format_exception(type(error), error, skip_our_frames(error.__traceback__)))


def _find(modules: dict[str, str], name: object, kind: str) -> str:
    module = modules.get(name) if isinstance(name, str) else None
    if module is None:
        raise PreflightError(f"the {kind} must be one of {', '.join(sorted(modules))}. Received: {name!r}.")
    return module


def skip_our_frames(trace: TracebackType | None) -> TracebackType | None:
    """Return the part of the traceback that begins with the first frame that is not ours; all of it if all are."""
    frame = trace
    while frame is not None and _is_ours(frame.tb_frame.f_code.co_filename):
        frame = frame.tb_next
    return frame or trace


def _is_all_ours(trace: TracebackType | None) -> bool:
    return all(_is_ours(frame.f_code.co_filename) for frame, _ in traceback.walk_tb(trace))


def _is_ours(filename: str) -> bool:
    path = Path(filename)
    return path.is_relative_to(_OUR_FOLDER) and not path.is_relative_to(_OUR_FOLDER / "models")


def _end_failed(ctx: RankContext, error: BaseException) -> NoReturn:
    """Explain the failure and end at once."""
    told = render_traceback(error)
    code = exit_code_for(error)
    if isinstance(error, SystemExit):
        message = f"the code called sys.exit({error.code!r}) before its task was done"
    else:
        message = str(error)
    print(told.rstrip() or f"{type(error).__name__}: {message}", file=sys.stderr, flush=True)
    step = getattr(error, "step", None)
    ctx.failure(
        error=name_error(error),
        message=message,
        traceback=told,
        step=step if isinstance(step, int) else ctx.reached or None,
        exit_code=code,
    )
    _leave(code)


def _leave(code: int) -> NoReturn:
    """End at once, not by way of the interpreter's exit: frameworks wait there for peers that will never come."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    sys.exit(main())
