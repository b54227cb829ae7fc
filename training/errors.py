"""Every error that Ganger raises on purpose. The tree is the taxonomy.

- `SpecError`: the user wrote it wrong. Never retried; nothing was started.
- `LaunchError`: the gang could not be started (missing environment, busy port, unreachable host).
- `WorkerError`: the code of a rank died.
- `InfrastructureError`: a node, a network, a disk, a preemption or a deadline; the next try may succeed.
- `TrackingError`: the tracking server misbehaved. Never fails a training by itself.

`exit_code` is what a process that ends with the error exits with (sysexits.h for 70, 75, 78); `retryable` is what the
Airflow operators and the restart policy go by.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

EXIT_OK = 0
EXIT_USER_CODE = 70
EXIT_TEMPORARY = 75
EXIT_SPEC = 78
EXIT_CANCELLED = 143


class GangerError(Exception):
    """Base of all errors of this project."""

    exit_code: ClassVar[int] = 1
    retryable: ClassVar[bool] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One mistake in one place of a user's file.

    Attributes:
        field: Dotted path of the field, such as `train.batch_size`; empty for the whole file.
        message: What must hold and what was received, one sentence each.
        remedy: What to do about it; may be empty.
        file: Path of the file as the user gave it; empty when the spec did not come from a file.
        line: Line in the file, from 1; 0 when unknown.
    """

    field: str
    message: str
    remedy: str = ""
    file: str = ""
    line: int = 0

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.file and self.line else self.file
        head = ": ".join(part for part in (place, self.field) if part)
        text = f"{head}: {self.message}" if head else self.message
        return f"{text} {self.remedy}" if self.remedy else text


class SpecError(GangerError):
    """The user's input is wrong; holds every problem found, not only the first.

    Attributes:
        problems: What is wrong, in the order of the file.
    """

    exit_code = EXIT_SPEC

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))

    def __reduce__(self) -> tuple[type[SpecError], tuple[tuple[Problem, ...]]]:
        return type(self), (self.problems,)


def spec_error(field: str, message: str, remedy: str = "") -> SpecError:
    """Return a `SpecError` with a single problem."""
    return SpecError([Problem(field=field, message=message, remedy=remedy)])


class LaunchError(GangerError):
    """The gang could not be started."""

    exit_code = EXIT_TEMPORARY
    retryable = True


class PreflightError(LaunchError):
    """Something that the run needs is absent (an environment, a server, a strategy); a retry would find the same."""

    exit_code = EXIT_SPEC
    retryable = False


class WorkerError(GangerError):
    """The code of a rank failed: it raised, exited non-zero, or left no model behind."""

    exit_code = EXIT_USER_CODE


class DivergedError(WorkerError):
    """A loss stopped being a finite number.

    Attributes:
        step: Step at which it was seen, or None.
    """

    def __init__(self, message: str, *, step: int | None = None) -> None:
        super().__init__(message)
        self.step = step


class EvaluationError(WorkerError):
    """A trained model does not meet `evaluate.require`."""


class InfrastructureError(GangerError):
    """A node, network, disk or deadline failed; not the user's code."""

    exit_code = EXIT_TEMPORARY
    retryable = True


class CancelledError(GangerError):
    """Somebody asked for the end."""

    exit_code = EXIT_CANCELLED


class TrackingError(GangerError):
    """The tracking server could not take or give what it was asked."""

    exit_code = EXIT_TEMPORARY
    retryable = True
