"""Which regular expressions may be failure patterns."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.policy.patterns import LENGTH_LOOKED_AT
from training.spec.failures import check_pattern


@pytest.mark.parametrize(
    "pattern",
    [
        "quota exceeded",
        r"^\w+Error: .*quota",
        "NCCL|RCCL",
        r"rank \d+ of \d+",
        "(?i)preempted",
        r"(?:a{1,3}){1,3}",
        r"(?>a+)+b",
        r"(a++)+b",
    ],
)
def test_ordinary_ones_may(pattern: str) -> None:
    assert check_pattern(pattern) == pattern


@pytest.mark.parametrize(
    "pattern", ["(a+)+", "(?:a*b?)*c", r"((x|y+)z?)+", "(?P<n>a+?)+?b", "((a{2,}))*c", "(?>(a+)+b)+", "(?=(a+)+b)x"]
)
def test_an_endless_repeat_in_another_may_not(pattern: str) -> None:
    with pytest.raises(ValueError, match="must not"):
        check_pattern(pattern)


@pytest.mark.parametrize("pattern", ["a{99999999999999999999}", "(?<=a+)b", "\\", "(?P<n>", "[[]x"])
def test_what_python_cannot_compile_may_not(pattern: str) -> None:
    with pytest.raises(ValueError, match="must be a regular expression"):
        check_pattern(pattern)


@given(st.text(max_size=30))
def test_any_text_is_accepted_or_refused_in_words(pattern: str) -> None:
    refusal = _refuse(pattern)
    assert refusal.startswith("must ") if refusal else re.search(pattern, "") is None


def _refuse(pattern: str) -> str:
    try:
        return "" if check_pattern(pattern) == pattern else "changed"
    except ValueError as error:
        return str(error)


def test_a_dear_one_that_may_takes_no_more_than_moments() -> None:
    """It is the length of what is looked at that bounds a search which grows with its third power."""
    pattern = re.compile(check_pattern(r"x.*.*.*y"))
    began = time.monotonic()
    assert pattern.search("x" + "a" * (LENGTH_LOOKED_AT - 1)) is None
    assert time.monotonic() - began < 5.0
