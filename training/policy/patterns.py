"""Failure patterns of a spec: what the words of a failed rank mean, where only its user can know."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from training.policy.failure import KINDS, Cause, FailureClass, FailureReport, classify, is_certain

#: The classes that words can tell of. Of all others Ganger knows by itself: a signal, a deadline, silence, a cancel.
TreatAs = Literal["user_code", "out_of_memory", "diverged", "lost_peer", "port_taken", "temporary", "spec"]
#: So many lines are looked at, and so much of each: what a pattern can cost is bounded, whatever a rank prints.
LINES_LOOKED_AT = 20
LENGTH_LOOKED_AT = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class FailurePattern:
    """A pattern, and the class of the failures whose words it is found in."""

    pattern: re.Pattern[str]
    cause: Cause


def compile_pattern(pattern: str, treat_as: TreatAs) -> FailurePattern:
    """Return a pattern of a spec, ready to be looked for."""
    return FailurePattern(pattern=re.compile(pattern), cause=Cause[treat_as.upper()])


def classify_by(patterns: Iterable[FailurePattern], report: FailureReport) -> FailureClass:
    """Return what kind of failure a rank's report tells of: by the first of `patterns` that is found, else as usual.

    Naming a pattern is an explicit wish, so it holds for exceptions of the user's own, too. It changes nothing where
    Ganger itself has found that the spec is wrong, that something is absent or that a loss is no number.

    >>> quota = compile_pattern("quota exceeded", "temporary")
    >>> report = FailureReport(exit_code=70, error="nets.Refused", message="GPU quota exceeded")
    >>> classify_by([], report).kind, classify_by([quota], report).kind
    ('WorkerError', 'InfrastructureError')
    """
    if not is_certain(report.error):
        lines = list(_iterate_lines(report))
        for one in patterns:
            if any(one.pattern.search(line) for line in lines):
                return FailureClass(cause=one.cause, kind=KINDS[one.cause], pattern=one.pattern.pattern)
    return classify(report)


def _iterate_lines(report: FailureReport) -> Iterator[str]:
    """Yield what a pattern is looked for in: the exception as Python would print it, then the last lines."""
    if report.error:
        yield from _cut(f"{report.error}: {report.message}".splitlines()[:LINES_LOOKED_AT])
    yield from _cut(report.lines[-LINES_LOOKED_AT:])


def _cut(lines: Sequence[str]) -> Iterator[str]:
    return (line[:LENGTH_LOOKED_AT] for line in lines)
