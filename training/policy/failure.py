"""Failure classes: from an exit code, what the rank told, and its last lines, to a cause and an error class."""

from __future__ import annotations

import builtins
import enum
import errno
import re
import signal
from collections.abc import Sequence
from dataclasses import dataclass

from training import errors
from training.errors import EXIT_SPEC, EXIT_TEMPORARY, EXIT_USER_CODE, GangerError


class Cause(enum.StrEnum):
    """Why a gang ended; decides about restarts."""

    SPEC = "spec"
    PREFLIGHT = "preflight"
    USER_CODE = "user code"
    DIVERGED = "diverged"
    OUT_OF_MEMORY = "out of memory"
    OUTPUT_MISSING = "output missing"
    SIGNAL = "signal"
    LOST_PEER = "lost peer"
    PORT_TAKEN = "port taken"
    TEMPORARY = "temporary"
    START_DEADLINE = "start deadline"
    STALL = "stall"
    LATE = "late"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"


#: The error class (by name, in `training.errors`) that a cause is reported as.
KINDS: dict[Cause, str] = {
    Cause.SPEC: "SpecError",
    Cause.PREFLIGHT: "PreflightError",
    Cause.USER_CODE: "WorkerError",
    Cause.DIVERGED: "DivergedError",
    Cause.OUT_OF_MEMORY: "WorkerError",
    Cause.OUTPUT_MISSING: "WorkerError",
    Cause.SIGNAL: "InfrastructureError",
    Cause.LOST_PEER: "InfrastructureError",
    Cause.PORT_TAKEN: "LaunchError",
    Cause.TEMPORARY: "InfrastructureError",
    Cause.START_DEADLINE: "LaunchError",
    Cause.STALL: "InfrastructureError",
    Cause.LATE: "InfrastructureError",
    Cause.TIMEOUT: "InfrastructureError",
    Cause.CANCELLED: "CancelledError",
}

#: Texts that tell a cause, tried in order. The peers of a dead rank complain in the words of their framework. What the
#: user's own exceptions say is no such text: "column 'task a is missing'" loses no peer.
PATTERNS: tuple[tuple[Cause, re.Pattern[str]], ...] = (
    (
        Cause.PORT_TAKEN,
        re.compile(
            r"address already in use|EADDRINUSE|No address added out of total|could not start gRPC server", re.I
        ),
    ),
    (
        Cause.OUT_OF_MEMORY,
        re.compile(
            r"out of memory|MemoryError|ResourceExhausted|OOM when allocating|cannot allocate memory|bad_alloc", re.I
        ),
    ),
    (
        Cause.LOST_PEER,
        re.compile(
            r"connection (reset|refused|closed)|connection closed by|broken pipe|socket closed|HorovodInternalError"
            r"|Horovod has been shut down|UnavailableError|\bUNAVAILABLE\b|failed to connect to all addresses"
            r"|coordination service"
            r"|collective ops? (is|are|was) aborted|task .* (is missing|heartbeat timeout)|peer (is )?(lost|gone)",
            re.I,
        ),
    ),
)
_UNIMPORTABLE = re.compile(r"^(ModuleNotFoundError|ImportError|SyntaxError|IndentationError|TabError)\b")
_CAUSE_OF_ERROR: dict[type[GangerError], Cause] = {
    errors.SpecError: Cause.SPEC,
    errors.PreflightError: Cause.PREFLIGHT,
    errors.DivergedError: Cause.DIVERGED,
    errors.CancelledError: Cause.CANCELLED,
}
#: Packages whose exceptions speak of peers, ports and memory.
FRAMEWORKS = frozenset({"grpc", "horovod", "jax", "jaxlib", "keras", "mxnet", "tensorflow", "tf_keras", "torch"})
#: Exceptions of Python that say what happened by their class, whoever raises them.
_CAUSE_OF_PYTHON: dict[str, Cause] = {
    "MemoryError": Cause.OUT_OF_MEMORY,
    "_ArrayMemoryError": Cause.OUT_OF_MEMORY,  # of numpy, in modules that move
    "BrokenPipeError": Cause.LOST_PEER,
    "ConnectionAbortedError": Cause.LOST_PEER,
    "ConnectionRefusedError": Cause.LOST_PEER,
    "ConnectionResetError": Cause.LOST_PEER,
}
#: How a framework tells of an exception of Python in a function that it called (`tf.numpy_function`).
_TRACEBACK = "Traceback (most recent call last):"
_QUOTED = re.compile(rf"^(\w+): (.*)\n{re.escape(_TRACEBACK)}$", re.MULTILINE)
_PORT_TAKEN = f"[Errno {errno.EADDRINUSE}]"
_NOT_FOUND = (126, 127)


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureReport:
    """What is known of a rank that failed.

    Attributes:
        exit_code: What it exited with, negative for a signal; None while it has not ended.
        error: Class of the exception that it told of, as `name_error` names it; empty if it told nothing.
        message: Text of that exception.
        lines: Its last lines of output, the newest last.
    """

    exit_code: int | None = None
    error: str = ""
    message: str = ""
    lines: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureClass:
    """What kind of failure it is.

    Attributes:
        cause: Why, which decides about restarts.
        kind: Names the class in `training.errors`, which decides about Airflow's retries.
        pattern: The pattern of the spec that told it, if one did.
    """

    cause: Cause
    kind: str
    pattern: str = ""


def classify(report: FailureReport) -> FailureClass:
    """Return what kind of failure a rank's report tells of.

    >>> classify(FailureReport(exit_code=78)).kind
    'SpecError'
    >>> classify(FailureReport(exit_code=-9)).cause
    <Cause.SIGNAL: 'signal'>
    >>> classify(FailureReport(exit_code=70, error="OSError", message="[Errno 98] Address already in use")).kind
    'LaunchError'
    """
    known = find_error_class(report.error)
    if known is not None:
        return FailureClass(cause=_cause_of(known, report.message), kind=known.__name__)
    cause = _cause_of_foreign(report) if report.error else _cause_of_silent(report)
    return FailureClass(cause=cause, kind=KINDS[cause])


def name_error(error: BaseException) -> str:
    """Return how a rank names the class of `error`: ours and Python's by its bare name, all others with the module.

    >>> import asyncio
    >>> name_error(errors.CancelledError()), name_error(ValueError()), name_error(asyncio.CancelledError())
    ('CancelledError', 'ValueError', 'asyncio.exceptions.CancelledError')
    """
    kind = type(error)
    is_bare = isinstance(error, GangerError) or kind.__module__ == builtins.__name__
    return kind.__qualname__ if is_bare else f"{kind.__module__}.{kind.__qualname__}"


def find_error_class(name: str) -> type[GangerError] | None:
    """Return the error class of this project that is called `name`, if any; names of Python's own are none."""
    found = getattr(errors, name, None) if name and not hasattr(builtins, name) else None
    return found if isinstance(found, type) and issubclass(found, GangerError) else None


def is_certain(error: str) -> bool:
    """Whether a rank told of an error of this project's that says all by its class.

    >>> is_certain("DivergedError"), is_certain("InfrastructureError"), is_certain("ValueError")
    (True, False, False)
    """
    known = find_error_class(error)
    return known is not None and issubclass(known, tuple(_CAUSE_OF_ERROR))


def match_cause(text: str) -> Cause | None:
    """Return the cause that a text tells of, or None."""
    return next((cause for cause, pattern in PATTERNS if pattern.search(text)), None)


def signal_of(exit_code: int | None) -> signal.Signals | None:
    """Return the signal that ended a process, also where a shell between told it as 128 + number.

    >>> signal_of(-9).name, signal_of(139).name, signal_of(3)
    ('SIGKILL', 'SIGSEGV', None)
    """
    if exit_code is None:
        return None
    number = -exit_code if exit_code < 0 else exit_code - 128
    return signal.Signals(number) if number in _SIGNALS else None


def _cause_of(known: type[GangerError], message: str) -> Cause:
    for error_class, cause in _CAUSE_OF_ERROR.items():
        if issubclass(known, error_class):
            return cause
    if not known.retryable:
        return Cause.USER_CODE  # its text may quote the user's
    matched = match_cause(message)
    return matched if matched in (Cause.LOST_PEER, Cause.PORT_TAKEN) else Cause.TEMPORARY


def _cause_of_foreign(report: FailureReport) -> Cause:
    """The rank told of an exception that is not ours: only those of frameworks are known by their words."""
    by_class = _CAUSE_OF_PYTHON.get(report.error.rpartition(".")[2] if _is_numpy(report.error) else report.error)
    if by_class is not None:
        return by_class
    if report.error == "OSError" and report.message.startswith(_PORT_TAKEN):
        return Cause.PORT_TAKEN
    if not _is_of_framework(report.error):
        return _cause_of_code(report.exit_code)
    if _TRACEBACK in report.message:  # the words are the user's again
        quoted = _QUOTED.search(report.message)
        error, message = quoted.groups() if quoted is not None else ("", "")
        return _cause_of_foreign(FailureReport(exit_code=report.exit_code, error=error, message=message))
    return match_cause(f"{report.error}: {report.message}") or _cause_of_code(report.exit_code)


def _is_of_framework(error: str) -> bool:
    return "." in error and error.partition(".")[0] in FRAMEWORKS


def _is_numpy(error: str) -> bool:
    return error.startswith("numpy.")


def _cause_of_silent(report: FailureReport) -> Cause:
    """The rank ended without a word of its own (a script, a crash): its exit code and last lines have to do."""
    lines = [line for line in report.lines if line.strip()]
    if signal_of(report.exit_code) is not None:
        return match_cause("\n".join(lines[-20:])) or Cause.SIGNAL
    if report.exit_code in (EXIT_SPEC, EXIT_TEMPORARY, EXIT_USER_CODE):
        return _cause_of_code(report.exit_code)
    if any(_UNIMPORTABLE.match(line) for line in lines[-3:]):
        return Cause.SPEC
    return match_cause("\n".join(lines[-3:])) or _cause_of_code(report.exit_code)


def _cause_of_code(exit_code: int | None) -> Cause:
    if exit_code == EXIT_SPEC:
        return Cause.SPEC
    if exit_code == EXIT_TEMPORARY:
        return Cause.TEMPORARY
    if exit_code in _NOT_FOUND:
        return Cause.PREFLIGHT
    return Cause.SIGNAL if signal_of(exit_code) is not None else Cause.USER_CODE


_SIGNALS = frozenset(
    {
        signal.SIGHUP,
        signal.SIGINT,
        signal.SIGQUIT,
        signal.SIGILL,
        signal.SIGTRAP,
        signal.SIGABRT,
        signal.SIGBUS,
        signal.SIGFPE,
        signal.SIGKILL,
        signal.SIGUSR1,
        signal.SIGSEGV,
        signal.SIGUSR2,
        signal.SIGPIPE,
        signal.SIGALRM,
        signal.SIGTERM,
        signal.SIGXCPU,
        signal.SIGXFSZ,
        signal.SIGSYS,
    }
)
