"""Entry point of a rank that runs a script: `python -P -m training.script SCRIPT ARGUMENT...`.

The script finds what `python SCRIPT ARGUMENT...` would give it: `sys.argv`, `__name__`, `__file__`, its own folder
first on its path. It knows nothing of its supervisor; this tells in its place that it began, how it failed, and which
model it left.
"""

from __future__ import annotations

import faulthandler
import os
import shutil
import signal
import sys
from pathlib import Path
from types import ModuleType
from typing import NoReturn

from training.errors import WorkerError
from training.policy.failure import name_error
from training.run.rank import RankContext
from training.script.after_import import AfterImport
from training.script.mlflow_runs import keep_script_to_one_run
from training.script.repairs import find_repairs
from training.settings import CHECKPOINT_DIR, MODEL_DIR
from training.worker import exit_code_for, render_traceback, skip_our_frames

#: MLflow's module that saves a model of a framework; it has none for MXNet.
_FLAVORS = {"tensorflow": "tensorflow", "mxnet": "pyfunc"}


def main(script: Path, arguments: list[str]) -> None:
    """Run the script as the main module of this process; a failure ends the process at once."""
    faulthandler.enable()
    # The supervisor asks for stacks before it ends a stalled gang. SIGTERM is left as it is: it ends the process,
    # unless the script wants otherwise.
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    ctx = RankContext.read()
    model_dir = Path(ctx.payload["model_dir"])
    if ctx.is_chief:
        shutil.rmtree(model_dir, ignore_errors=True)  # of an earlier attempt: MLflow saves into no folder that exists
    Path(os.environ[CHECKPOINT_DIR]).mkdir(parents=True, exist_ok=True)  # MXNet saves into no folder that does not
    AfterImport({**keep_script_to_one_run(ctx), **find_repairs(ctx)}).install()
    os.chdir(ctx.payload["base_dir"])
    ctx.heartbeat(f"running {script.name}")
    try:
        run_as_main(script, arguments)
    except SystemExit as error:
        if error.code in (None, 0):
            _finish(ctx, model_dir)
        else:
            code = error.code if isinstance(error.code, int) else 1
            ctx.failure(error=name_error(error), message=str(error.code), exit_code=code % 256)
        raise
    except BaseException as error:  # noqa: BLE001 - the border: whatever it is, the supervisor is told
        _end_failed(ctx, error)
    _finish(ctx, model_dir)


def run_as_main(script: Path, arguments: list[str]) -> None:
    """Execute a file as the module `__main__`; what it raises passes as it is, from its first own frame on."""
    module = ModuleType("__main__")
    module.__dict__.update(__file__=str(script), __builtins__=__builtins__, __spec__=None, __cached__=None)
    sys.modules["__main__"] = module
    sys.argv = [str(script), *arguments]
    sys.path.insert(0, str(script.resolve().parent))
    exec(compile(script.read_bytes(), str(script), "exec", dont_inherit=True), module.__dict__)


def _finish(ctx: RankContext, model_dir: Path) -> None:
    """Tell of the model that the script left, if it did.

    Raises:
        SystemExit: It left none, and had to.
    """
    if not ctx.is_chief:
        return
    if (model_dir / "MLmodel").is_file():
        ctx.model(model_dir)
    elif ctx.payload["wants_model"]:
        flavor = _FLAVORS[ctx.payload["engine"]]
        _end_failed(
            ctx,
            WorkerError(
                f"the script must leave a model in MLflow's format in ${MODEL_DIR}: `evaluate.require` or `register` "
                f"wants one. Received: none in {model_dir}. Let rank 0 call mlflow.{flavor}.save_model with it."
            ),
        )


def _end_failed(ctx: RankContext, error: BaseException) -> NoReturn:
    """Explain the failure as Python would, tell the supervisor, and end at once.

    Not by way of the interpreter's exit: frameworks wait there for peers that will never come.
    """
    error = error.with_traceback(skip_our_frames(error.__traceback__))
    sys.excepthook(type(error), error, error.__traceback__)
    code = exit_code_for(error)
    ctx.failure(error=name_error(error), message=str(error), traceback=render_traceback(error), exit_code=code)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
