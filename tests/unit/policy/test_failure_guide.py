"""The guide says of every class what the code does with it."""

from __future__ import annotations

from typing import get_args

from training.policy.failure import KINDS, Cause, find_error_class
from training.policy.patterns import LENGTH_LOOKED_AT, LINES_LOOKED_AT, TreatAs
from training.policy.restart import BUDGETS, RestartPolicy
from training.settings import REPOSITORY
from training.spec.train import TensorFlowTrain

GUIDE = (REPOSITORY / "docs" / "guides" / "failures.md").read_text(encoding="utf-8")


def _rows() -> list[list[str]]:
    lines = [line for line in GUIDE.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]


def _describe(cause: Cause) -> list[str]:
    kind = find_error_class(KINDS[cause])
    assert kind is not None
    return [cause, BUDGETS[cause], kind.__name__, "tries again" if kind.retryable else "fails"]


def test_the_table_is_the_codes() -> None:
    assert [[row[0], *row[2:]] for row in _rows()] == [_describe(cause) for cause in Cause]
    assert all(row[1] for row in _rows())


def test_the_numbers_are_the_codes() -> None:
    spec = TensorFlowTrain(engine="tensorflow")
    assert f"`train.restarts`, {spec.restarts} by default" in GUIDE
    assert f"`train.user_restarts`, {spec.user_restarts} by default" in GUIDE
    assert f"{RestartPolicy().port_retries} restarts with fresh ports" in GUIDE
    assert f"last {LINES_LOOKED_AT} lines, of which the first {LENGTH_LOOKED_AT} characters count" in GUIDE
    assert all(f"`{name}`" in GUIDE for name in get_args(TreatAs))
