"""How a rank finds its task and explains how it ended; no process is started."""

from __future__ import annotations

import errno
import importlib
import sys
from types import ModuleType

import pytest

from training import worker
from training.errors import (
    DivergedError,
    EvaluationError,
    InfrastructureError,
    PreflightError,
    WorkerError,
    spec_error,
)
from training.run.rank import RankContext


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (spec_error("train.epochs", "must be at least 1."), 78),
        (PreflightError("no engine"), 78),
        (ModuleNotFoundError("no module nets"), 78),
        (SyntaxError("bad"), 78),
        (OSError(errno.ENOSPC, "No space left on device"), 75),
        (OSError(errno.ENOENT, "No such file"), 70),
        (InfrastructureError("disk"), 75),
        (DivergedError("nan"), 70),
        (WorkerError("x"), 70),
        (ValueError("boom"), 70),
        (MemoryError(), 70),
        (SystemExit(3), 3),
        (SystemExit(0), 70),
        (SystemExit(256), 70),
        (SystemExit(259), 3),
        (SystemExit(-1), 255),
        (KeyboardInterrupt(), 70),
        (SystemExit("text"), 70),
    ],
)
def test_each_error_has_its_exit_code(error: BaseException, code: int) -> None:
    assert worker.exit_code_for(error) == code


def test_a_service_of_an_engine_serves_whatever_the_job_does(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = ModuleType("fake_engine")
    engine.train, engine.serve = print, repr  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "fake_engine", engine)
    monkeypatch.setitem(worker.ENGINES, "fake", "fake_engine")
    payload = {"task": "train", "engine": "fake"}

    assert worker.find_task(RankContext(rank=1, world_size=1, service=True, payload=payload)) is repr
    assert worker.find_task(RankContext(rank=0, world_size=1, payload=payload)) is print


def test_tracebacks_begin_with_the_users_code() -> None:
    with pytest.raises(ValueError, match="boom") as caught:
        _user_code()
    assert "in _user_code" in worker.render_traceback(caught.value)


def test_a_mistake_in_a_spec_is_explained_by_its_text_alone() -> None:
    with pytest.raises(PreflightError) as caught:
        worker.find_task(RankContext(rank=0, world_size=1))
    assert worker.render_traceback(caught.value) == ""


def test_an_error_of_ours_from_our_own_code_is_explained_by_its_text_alone() -> None:
    error = EvaluationError("accuracy must be at least 0.9.")
    assert worker.render_traceback(error) == ""


def test_of_an_error_that_ours_stands_for_the_traceback_is_shown_and_no_other() -> None:
    error = EvaluationError("accuracy must be at least 0.9.")
    try:
        _user_code()
    except ValueError as cause:
        error.__cause__ = cause

    told = worker.render_traceback(error)

    assert "in _user_code" in told
    assert told.endswith("ValueError: boom\n")


def test_a_traceback_with_frames_of_ours_alone_is_kept_whole() -> None:
    with pytest.raises(AttributeError) as caught:
        worker.render_traceback(None)  # type: ignore[arg-type]
    trace = caught.value.__traceback__
    assert trace is not None
    assert "in render_traceback" in worker.render_traceback(caught.value.with_traceback(trace.tb_next))


def _user_code() -> None:
    raise ValueError("boom")


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        (
            {},
            "the task must be one of check_tracking, close_tracking, fetch_model, prepare_data, register_model. "
            "Received: None.",
        ),
        ({"task": "dance"}, "Received: 'dance'."),
        (
            {"task": "train", "engine": "caffe"},
            "the engine must be one of horovod, mxnet, tensorflow. Received: 'caffe'.",
        ),
    ],
)
def test_an_unknown_task_or_engine_is_named(payload: dict[str, str], message: str) -> None:
    with pytest.raises(PreflightError) as caught:
        worker.find_task(RankContext(rank=0, world_size=1, payload=payload))
    assert message in str(caught.value)


def test_every_task_of_this_environment_exists() -> None:
    for task, module in worker.TASKS.items():
        assert callable(getattr(importlib.import_module(module), task))
