"""What the patterns of a spec make of the words of a rank."""

from __future__ import annotations

from typing import get_args

import pytest

from training.errors import GangerError
from training.policy.failure import KINDS, Cause, FailureReport, classify, find_error_class
from training.policy.patterns import LENGTH_LOOKED_AT, LINES_LOOKED_AT, TreatAs, classify_by, compile_pattern

QUOTA = compile_pattern("quota exceeded", "temporary")


@pytest.mark.parametrize("treat_as", get_args(TreatAs))
def test_every_class_can_be_named(treat_as: TreatAs) -> None:
    found = classify_by([compile_pattern("words", treat_as)], FailureReport(exit_code=70, error="E", message="words"))
    assert found.cause is Cause(treat_as.replace("_", " "))
    assert (found.kind, found.pattern) == (KINDS[found.cause], "words")


@pytest.mark.parametrize(
    "report",
    [
        FailureReport(exit_code=70, error="ValueError", message="GPU quota exceeded"),
        FailureReport(exit_code=70, error="nets.quota exceeded", message=""),
        FailureReport(exit_code=70, error="ValueError", message="first line\nquota exceeded"),
        FailureReport(exit_code=70, error="ValueError", message="x", lines=("quota exceeded", "Traceback", "...")),
        FailureReport(exit_code=1, lines=("quota exceeded",)),
        FailureReport(exit_code=78, lines=("quota exceeded",)),
        FailureReport(exit_code=-9, lines=("quota exceeded",)),
        FailureReport(exit_code=70, error="WorkerError", message="nets:rows raised Refused: quota exceeded"),
        FailureReport(exit_code=75, error="TrackingError", message="quota exceeded"),
    ],
)
def test_they_are_looked_for_in_all_that_a_rank_said(report: FailureReport) -> None:
    assert classify_by([QUOTA], report).cause is Cause.TEMPORARY


def test_they_come_before_what_is_built_in_and_the_first_one_counts() -> None:
    report = FailureReport(exit_code=1, lines=("ConnectionResetError: connection reset by the licence server",))
    assert classify(report).cause is Cause.LOST_PEER
    licence, reset = compile_pattern("licence server", "user_code"), compile_pattern("reset", "spec")
    assert classify_by([QUOTA, licence, reset], report).cause is Cause.USER_CODE
    assert classify_by([reset, licence], report).cause is Cause.SPEC


@pytest.mark.parametrize("error", ["SpecError", "PreflightError", "DivergedError", "CancelledError"])
def test_what_ganger_itself_has_found_stands(error: str) -> None:
    """K17, K30: a loss that is no number is not trained on, whatever else was printed."""
    report = FailureReport(exit_code=70, error=error, message="quota exceeded", lines=("quota exceeded",))
    assert classify_by([QUOTA], report) == classify(report)


def test_without_a_match_all_is_as_usual() -> None:
    report = FailureReport(exit_code=-9, lines=("working",))
    assert classify_by([QUOTA], report) == classify(report)


def test_so_much_is_looked_at_and_no_more() -> None:
    long_ago = ("quota exceeded", *["epoch"] * LINES_LOOKED_AT)
    assert classify_by([QUOTA], FailureReport(exit_code=1, lines=long_ago)).cause is Cause.USER_CODE
    far_right = " " * LENGTH_LOOKED_AT + "quota exceeded"
    assert classify_by([QUOTA], FailureReport(exit_code=1, lines=(far_right,))).cause is Cause.USER_CODE
    assert classify_by([QUOTA], FailureReport(exit_code=1, lines=long_ago[:-1])).cause is Cause.TEMPORARY


@pytest.mark.parametrize(
    ("treat_as", "retried"),
    [
        ("temporary", True),
        ("lost_peer", True),
        ("port_taken", True),
        ("user_code", False),
        ("out_of_memory", False),
        ("diverged", False),
        ("spec", False),
    ],
)
def test_the_class_decides_about_airflows_retries(treat_as: TreatAs, retried: bool) -> None:
    found = classify_by([compile_pattern("x", treat_as)], FailureReport(exit_code=70, error="E", message="x"))
    kind = find_error_class(found.kind)
    assert kind is not None
    assert issubclass(kind, GangerError)
    assert kind.retryable is retried
