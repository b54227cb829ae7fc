"""What parsing costs and what it may not touch: it happens all the time, in the scheduler's neighbourhood."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from specs import SPEC

from training.settings import REPOSITORY

PARSE = """
import json, sys, time
from airflow.dag_processing.dagbag import DagBag
begin = time.perf_counter()
bag = DagBag(sys.argv[1])
print(json.dumps({
    "errors": bag.import_errors,
    "dags": sorted(bag.dags),
    "modules": sorted({name.partition(".")[0] for name in sys.modules}),
    "seconds": time.perf_counter() - begin,
}))
"""
FORBIDDEN = {"tensorflow", "keras", "horovod", "mxnet", "mlflow", "numpy", "pandas", "sklearn"}


def parse(dags: Path, **env: str) -> dict[str, object]:
    answer = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PARSE, str(dags)],
        env={**os.environ, **env},
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    parsed: dict[str, object] = json.loads(answer.stdout.splitlines()[-1])
    return parsed


def test_parsing_all_dags_imports_no_framework() -> None:
    """K54. Airflow itself imports none of them either, so nothing has to be subtracted."""
    parsed = parse(REPOSITORY / "dags")
    assert parsed["errors"] == {}
    assert "digits" in parsed["dags"]  # type: ignore[operator]
    assert FORBIDDEN.isdisjoint(parsed["modules"])  # type: ignore[arg-type]


def test_a_framework_that_breaks_on_import_breaks_no_parsing(tmp_path: Path) -> None:
    """K07, K54: a stub that fails when it is imported comes before every real package."""
    for name in FORBIDDEN:
        (tmp_path / f"{name}.py").write_text("raise AssertionError('imported while parsing')\n")
    parsed = parse(REPOSITORY / "dags", PYTHONPATH=str(tmp_path))
    assert parsed["errors"] == {}
    assert "digits" in parsed["dags"]  # type: ignore[operator]


def test_a_users_module_is_not_imported_by_parsing(folder: Path) -> None:
    """K54: one that sleeps for a minute, one that raises."""
    (folder / "slow.py").write_text("import time\ntime.sleep(60)\n")
    (folder / "wrong.py").write_text("raise RuntimeError('imported while parsing')\n")
    for name in ("slow", "wrong"):
        text = SPEC.format(name=name).replace("training.models.mlp", f"{name}.py").replace("digits", f"{name}:load")
        (folder / f"{name}.yaml").write_text(text)
    parsed = parse(REPOSITORY / "dags")
    assert {"slow", "wrong"} <= set(parsed["dags"])  # type: ignore[call-overload]
    assert parsed["seconds"] < 10  # type: ignore[operator]
