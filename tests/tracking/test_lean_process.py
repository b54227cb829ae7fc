from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from real_run import RealRun

#: Runs as the supervisor and the registering worker do: MLflow is imported lean where the process is ours alone.
_TRAINING = """
import importlib.machinery, json, os, sys
from pathlib import Path
sys.modules["__main__"].__spec__ = importlib.machinery.ModuleSpec("training.run.supervisor", None)
sys.path.insert(0, sys.argv[1])
from real_run import RealRun, close, epoch, saved, step
from training.tracking.preflight import check_tracking
from training.tracking.registry import register_version
from training.tracking.replay import close_open_runs

uri, folder, model, name = sys.argv[2:6]
check_tracking(uri, name)
real = RealRun.of(uri, Path(folder), name)
tracker = real.tracker()
assert tracker.open()
tracker.handle(step(1))
tracker.handle(epoch(1))
tracker.handle(saved(Path(model)))
report = close(tracker)
assert report.closed and not report.notes, report
assert register_version(real.ref, name, "champion", {"a": "b"}).version == "1"
assert close_open_runs(real.run, "KILLED") == ()
assert "pandas" not in sys.modules
print("done")
"""


def test_a_process_of_ours_needs_no_pandas_and_says_nothing_else(real: RealRun, model: Path, tmp_path: Path) -> None:
    """What MLflow, its migrations and its deprecations would like to say stays out of the supervisor's log."""
    arguments = [str(Path(__file__).parent), real.plan.tracking_uri, str(tmp_path), str(model), real.plan.experiment]
    done = subprocess.run([sys.executable, "-c", _TRAINING, *arguments], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


def test_a_new_database_is_made_without_a_word(model: Path, tmp_path: Path) -> None:
    uri = f"sqlite:///{tmp_path / 'home' / 'mlflow.db'}"
    arguments = [str(Path(__file__).parent), uri, str(tmp_path), str(model), "digits"]
    done = subprocess.run([sys.executable, "-c", _TRAINING, *arguments], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
