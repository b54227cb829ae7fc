from __future__ import annotations

import datetime
import json
from pathlib import Path

import pytest

from ganger.xcom import MAX_BYTES, check_xcom
from training.errors import WorkerError


def test_small_plain_values_pass_unchanged(tmp_path: Path) -> None:
    values = {"metrics": {"loss": 0.5}, "steps": 40, "model": "/m", "alias": None, "reused": True}
    assert check_xcom(values, tmp_path) == values
    assert not list(tmp_path.iterdir())


def test_what_is_too_large_goes_to_a_file_of_the_run(tmp_path: Path) -> None:
    """K52: 100 000 floats."""
    history = [step / 7 for step in range(100_000)]
    kept = check_xcom({"steps": 40, "history": history}, tmp_path / "xcom")
    assert len(json.dumps(kept)) < MAX_BYTES
    assert kept["steps"] == 40
    assert json.loads(Path(kept["history"]["file"]).read_text()) == history


def test_many_values_that_are_too_large_together_are_cut_down_from_the_largest(tmp_path: Path) -> None:
    kept = check_xcom({f"v{n}": "x" * (1000 * n) for n in range(1, 9)}, tmp_path)
    assert len(json.dumps(kept)) <= MAX_BYTES
    assert kept["v1"] == "x" * 1000
    assert set(kept["v8"]) == {"file"}


@pytest.mark.parametrize(
    ("value", "named"),
    [
        (float("nan"), "nan"),
        (float("inf"), "inf"),
        (b"bytes", "bytes"),
        ({1, 2}, "set"),
        (Path("model"), "Path"),
        (datetime.date(2026, 1, 1), "date"),
        (object(), "object"),
    ],
)
@pytest.mark.parametrize("wrap", [lambda value: value, lambda value: [1, value], lambda value: {"inner": value}])
def test_what_is_not_json_is_refused_by_key_and_type(value: object, named: str, wrap: object, tmp_path: Path) -> None:
    """K52."""
    with pytest.raises(WorkerError, match=rf"result history.*{named}"):
        check_xcom({"history": wrap(value)}, tmp_path)  # type: ignore[operator]


def test_keys_that_are_not_text_are_refused(tmp_path: Path) -> None:
    with pytest.raises(WorkerError, match=r"keys of the result metrics must be text. Received: 1"):
        check_xcom({"metrics": {1: 2}}, tmp_path)


def test_numpy_scalars_are_refused_by_name(tmp_path: Path) -> None:
    """K52. A float64 is a float and passes as one."""
    numpy = pytest.importorskip("numpy")
    with pytest.raises(WorkerError, match=r"result loss .*float32"):
        check_xcom({"loss": numpy.float32(0.5)}, tmp_path)
