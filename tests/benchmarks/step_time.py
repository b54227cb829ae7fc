"""What watching costs: the time of a step of ours against that of plain `keras.Model.fit(x, y)`, in one process.

    python -m tests.benchmarks.step_time [--copies N] [--epochs N] [--rounds N]

The model is `mlp` on all 1797 digits in batches of 64, one thread as for a rank. Plain and ours take turns, so that a
busy machine hurts both alike; the first epoch of each, which compiles, is left out. With one copy of the rows an epoch
has 28 steps, and what `fit` does between epochs counts as much as they do; with twenty, steps are what is measured.
"""

import argparse
import json
import os
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from training import settings
from training.data.store import prepare_dataset
from training.launch.environment import render_thread_variables
from training.run.event import RECORD_SEPARATOR
from training.spec.pipeline import DataSpec

PYTHON = settings.REPOSITORY / ".engines" / "tensorflow" / "bin" / "python"
TIMED = Path(__file__).with_name("timed_fits.py")


def main():
    options = read_options()
    with tempfile.TemporaryDirectory() as folder:
        dataset = prepare_copies(Path(folder), options.copies)
        times = measure(dataset, Path(folder), options)
    print(render(times, options))


def read_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--copies", type=int, default=20, help="of the digits")
    parser.add_argument("--epochs", type=int, default=4, help="of each fit, one more being left out")
    parser.add_argument("--rounds", type=int, default=5, help="fits of each kind")
    return parser.parse_args()


def prepare_copies(folder, copies):
    """Return the folder of a prepared dataset that holds the digits `copies` times."""
    digits = prepare_dataset(DataSpec(source="digits", validation_fraction=0), folder, folder / "home", print).path
    x, y = np.load(digits / "train_x.npy"), np.load(digits / "train_y.npy")
    np.savez(folder / "copies.npz", x=np.tile(x, (copies, 1)), y=np.tile(y, copies))
    return prepare_dataset(DataSpec(source="copies.npz", validation_fraction=0), folder, folder / "home", print).path


def measure(dataset, folder, options):
    """Return milliseconds a step, by kind of fit."""
    command = [PYTHON, TIMED, dataset, folder, options.epochs, options.rounds]
    env = {**os.environ, **render_thread_variables(1), "TF_CPP_MIN_LOG_LEVEL": "2"}
    run = subprocess.run([str(part) for part in command], env=env, stdout=subprocess.PIPE, text=True, check=True)
    lines = [line for line in run.stdout.splitlines() if line.startswith("{") and RECORD_SEPARATOR not in line]
    return json.loads(lines[-1])


def render(times, options):
    plain = times["plain"]
    rows = [f"{name:<36}{ms:8.3f} ms a step{ms / plain:8.2f} times plain" for name, ms in times.items()]
    title = f"medians of {options.rounds} fits of {options.epochs} epochs, {options.copies} x 1797 rows"
    return "\n".join([title, *rows])


if __name__ == "__main__":
    main()
