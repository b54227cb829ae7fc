"""From exit codes, told errors and last lines to a cause and an error class."""

from __future__ import annotations

import signal

import pytest

from training import errors
from training.policy.failure import KINDS, Cause, FailureReport, classify, find_error_class, name_error, signal_of

TF = "tensorflow.python.framework.errors_impl"


@pytest.mark.parametrize(
    ("exit_code", "lines", "cause", "kind"),
    [
        (78, (), Cause.SPEC, "SpecError"),
        (75, (), Cause.TEMPORARY, "InfrastructureError"),
        (70, (), Cause.USER_CODE, "WorkerError"),
        (1, (), Cause.USER_CODE, "WorkerError"),
        (99, (), Cause.USER_CODE, "WorkerError"),
        (127, ("bash: nvcc: command not found",), Cause.PREFLIGHT, "PreflightError"),
        (-signal.SIGKILL, (), Cause.SIGNAL, "InfrastructureError"),
        (-signal.SIGSEGV, (), Cause.SIGNAL, "InfrastructureError"),
        (128 + signal.SIGKILL, (), Cause.SIGNAL, "InfrastructureError"),
        (143, (), Cause.SIGNAL, "InfrastructureError"),
        (1, ("  File 'x.py'", "ModuleNotFoundError: No module named 'nets'"), Cause.SPEC, "SpecError"),
        (1, ("    def f(", "SyntaxError: '(' was never closed"), Cause.SPEC, "SpecError"),
        (1, ("OSError: [Errno 98] Address already in use",), Cause.PORT_TAKEN, "LaunchError"),
        (1, ("ConnectionResetError: [Errno 104] Connection reset by peer",), Cause.LOST_PEER, "InfrastructureError"),
        (
            -signal.SIGABRT,
            ("F0000 coordination service: ...", "*** Check failure"),
            Cause.LOST_PEER,
            "InfrastructureError",
        ),
        (1, ("MemoryError", ""), Cause.OUT_OF_MEMORY, "WorkerError"),
    ],
)
def test_a_rank_that_told_nothing(exit_code: int, lines: tuple[str, ...], cause: Cause, kind: str) -> None:
    found = classify(FailureReport(exit_code=exit_code, lines=lines))
    assert (found.cause, found.kind) == (cause, kind)


@pytest.mark.parametrize(
    ("error", "message", "exit_code", "cause", "kind"),
    [
        ("ValueError", "boom", 70, Cause.USER_CODE, "WorkerError"),
        ("ModuleNotFoundError", "No module named 'nets'", 78, Cause.SPEC, "SpecError"),
        (f"{TF}.UnavailableError", "Socket closed", 70, Cause.LOST_PEER, "InfrastructureError"),
        (f"{TF}.ResourceExhaustedError", "OOM when allocating tensor", 70, Cause.OUT_OF_MEMORY, "WorkerError"),
        ("horovod.common.exceptions.HorovodInternalError", "", 70, Cause.LOST_PEER, "InfrastructureError"),
        (f"{TF}.UnknownError", "Horovod has been shut down.", 70, Cause.LOST_PEER, "InfrastructureError"),
        ("MemoryError", "", 70, Cause.OUT_OF_MEMORY, "WorkerError"),
        ("numpy._core._exceptions._ArrayMemoryError", "Unable to", 70, Cause.OUT_OF_MEMORY, "WorkerError"),
        ("ConnectionResetError", "[Errno 104] x", 70, Cause.LOST_PEER, "InfrastructureError"),
        ("OSError", "[Errno 98] Address already in use", 70, Cause.PORT_TAKEN, "LaunchError"),
        (f"{TF}.UnknownError", "Could not start gRPC server", 70, Cause.PORT_TAKEN, "LaunchError"),
        ("OSError", "No space left on device", 75, Cause.TEMPORARY, "InfrastructureError"),
        ("DivergedError", "loss became nan", 70, Cause.DIVERGED, "DivergedError"),
        ("EvaluationError", "accuracy is 0.1", 70, Cause.USER_CODE, "EvaluationError"),
        ("PreflightError", "no such engine", 78, Cause.PREFLIGHT, "PreflightError"),
        ("LaunchError", "port 5: Address already in use", 75, Cause.PORT_TAKEN, "LaunchError"),
        ("InfrastructureError", "disk full", 75, Cause.TEMPORARY, "InfrastructureError"),
        ("TrackingError", "connection refused", 75, Cause.LOST_PEER, "TrackingError"),
    ],
)
def test_a_rank_that_told_its_failure(error: str, message: str, exit_code: int, cause: Cause, kind: str) -> None:
    found = classify(FailureReport(exit_code=exit_code, error=error, message=message, lines=("connection refused",)))
    assert (found.cause, found.kind) == (cause, kind)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (f"{TF}.CancelledError", "RecvAsync is cancelled"),
        ("asyncio.exceptions.CancelledError", ""),
        ("__main__.SpecError", "bad"),
        ("nets.InfrastructureError", "Socket closed"),
        ("nets.ConnectionResetError", "bad"),
        ("tensorflow_of_mine.Error", "Socket closed"),
        ("ValueError", "column 'task a is missing'"),
        ("ValueError", "the file out of memory map"),
        ("RuntimeError", "address already in use"),
        ("KeyboardInterrupt", ""),
        ("WorkerError", "nets:rows raised ValueError: the file out of memory map"),
    ],
)
def test_names_and_words_of_the_users_exceptions_tell_no_cause(error: str, message: str) -> None:
    found = classify(FailureReport(exit_code=70, error=error, message=message, lines=("connection refused",)))
    assert (found.cause, found.kind) == (Cause.USER_CODE, "WorkerError")


def _quote(exception: str) -> str:
    """What TensorFlow 2.18 says of an exception in a function of `tf.numpy_function`."""
    return (
        "Graph execution error:\n\nDetected at node PyFunc defined at (most recent call last):\n"
        f'  File "nets.py", line 5, in g\n\n{exception}\nTraceback (most recent call last):\n\n'
        f'  File "nets.py", line 3, in f\n    raise\n\n{exception}\n\n\n\t [[{{{{node PyFunc}}}}]] [Op:__inference_g_6]'
    )


@pytest.mark.parametrize(
    ("exception", "cause"),
    [
        ("RuntimeError: connection reset: task 1 is missing", Cause.USER_CODE),
        ("BadRows: first line\nsocket closed", Cause.USER_CODE),
        ("ConnectionResetError: [Errno 104] x", Cause.LOST_PEER),
        ("MemoryError: ", Cause.OUT_OF_MEMORY),
        ("OSError: [Errno 98] Address already in use", Cause.PORT_TAKEN),
    ],
)
def test_an_exception_that_a_framework_quotes_counts_as_itself(exception: str, cause: Cause) -> None:
    report = FailureReport(exit_code=70, error=f"{TF}.UnknownError", message=_quote(exception))
    assert classify(report).cause is cause


def test_errors_are_named_with_their_module_unless_they_are_ours_or_pythons() -> None:
    class CancelledError(Exception):
        pass

    named = [name_error(error) for error in (errors.CancelledError(), KeyError(), CancelledError())]
    assert named[:2] == ["CancelledError", "KeyError"]
    assert named[2].startswith(f"{__name__}.")


def test_noise_long_before_the_end_does_not_count() -> None:
    lines = ("W grpc: UNAVAILABLE: connection refused, retrying", "epoch 1", "epoch 2", "ValueError: boom")
    assert classify(FailureReport(exit_code=1, lines=lines)).cause is Cause.USER_CODE


def test_every_cause_has_a_kind_that_exists() -> None:
    assert set(KINDS) == set(Cause)
    assert all(find_error_class(kind) for kind in KINDS.values())


def test_only_error_classes_of_ours_are_found_by_name() -> None:
    assert find_error_class("SpecError") is errors.SpecError
    assert [find_error_class(name) for name in ("", "ValueError", "Problem", "EXIT_OK", "Sequence")] == [None] * 5


@pytest.mark.parametrize("exit_code", [None, 0, 7, 70, 75, 78, 99, 127])
def test_ordinary_exit_codes_are_no_signals(exit_code: int | None) -> None:
    assert signal_of(exit_code) is None
