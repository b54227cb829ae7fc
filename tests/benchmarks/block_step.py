"""What a second device gains: steps of one Gluon block on one, as two replicas, and with its parts on two, by turns.

    python -m tests.benchmarks.block_step [--rows N] [--rounds N] [--micro-batches N ...]

Nine dense layers, 1024 units each, half of them on each of two devices, which are parts of the CPU with a thread each.
Whatever the micro-batches gain, they gain from MXNet's engine: it has a queue for each device.
"""

import argparse
import json
import os
import statistics
import subprocess
from pathlib import Path

from training import settings
from training.launch.environment import render_thread_variables

PYTHON = settings.REPOSITORY / ".engines" / "mxnet" / "bin" / "python"
TIMED = Path(__file__).with_name("timed_blocks.py")


def main():
    options = read_options()
    wanted = json.dumps({"rows": options.rows, "rounds": options.rounds, "micro_batches": options.micro_batches})
    env = {**os.environ, **render_thread_variables(1), "CUDA_VISIBLE_DEVICES": ""}
    run = subprocess.run([str(PYTHON), str(TIMED), wanted], env=env, stdout=subprocess.PIPE, text=True, check=True)
    print(render(json.loads(run.stdout.splitlines()[-1]), options))


def read_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2048, help="of a batch")
    parser.add_argument("--rounds", type=int, default=9, help="steps of each kind")
    parser.add_argument("--micro-batches", type=int, nargs="+", default=[1, 2, 4, 8])
    return parser.parse_args()


def render(times, options):
    """Return the table; the speed-up is the median of the ratios of the steps of one round."""
    lines = [
        f"medians of {options.rounds} steps of {options.rows} rows",
        "",
        "| | ms a step | speed-up |",
        "|---|---|---|",
    ]
    for name, steps in times.items():
        faster = statistics.median(one / step for one, step in zip(times["one device"], steps, strict=True))
        lines.append(f"| {name} | {statistics.median(steps):.0f} | {faster:.2f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
