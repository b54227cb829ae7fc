"""What a pipeline gains: steps of one model in two stages, by turns with those of the unsplit model.

    python -m tests.benchmarks.pipeline_step [--rows N] [--rounds N] [--micro-batches N ...]

Each stage is a process on a core of its own; the unsplit model is trained by the first of them, so that it has the same
single core. Nine dense layers of 1024 units (the last one has one), of which auto makes two stages of equal cost.
`bound` is what a pipeline without any overhead would take: the unsplit step, divided by the stages, times
(M+K-1)/M. Rounds go through all of them in turn: each figure is the median of what the rounds gave.

The second table is by how much the largest memory of each stage grew in steps of one schedule, in processes that did
nothing else.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

from training import settings
from training.launch.ports import claim_ports

PYTHON = settings.REPOSITORY / ".engines" / "tensorflow" / "bin" / "python"
TIMED = Path(__file__).with_name("timed_pipeline.py")
STAGES = 2
ENV = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2", "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}


def main():
    options = read_options()
    if len(os.sched_getaffinity(0)) < STAGES:
        sys.exit(f"a core for each of the {STAGES} stages is needed. Received: {len(os.sched_getaffinity(0))}.")
    wanted = {"rows": options.rows, "rounds": options.rounds, "micro_batches": options.micro_batches}
    print(render_times(ask("time", wanted), options.micro_batches))
    deep = {"rows": 4 * options.rows, "rounds": 3, "micro_batches": 16}
    grown = {schedule: ask("memory", {**deep, "schedule": schedule}) for schedule in ("1f1b", "gpipe")}
    print(render_memory(grown, deep))


def read_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2048, help="of a batch")
    parser.add_argument("--rounds", type=int, default=7, help="steps of each kind")
    parser.add_argument("--micro-batches", type=int, nargs="+", default=[1, 2, 4, 8, 16])
    return parser.parse_args()


def ask(what, options):
    """Return what the engine measures with stages that are started for it."""
    with start_stages() as cluster:
        command = [str(PYTHON), str(TIMED), what, json.dumps(cluster), json.dumps(options)]
        run = subprocess.run(command, env=ENV, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(run.stdout.splitlines()[-1])


@contextmanager
def start_stages():
    names = ("chief", *(f"stage {index}" for index in range(STAGES)))
    claim = claim_ports(names)
    addresses = [f"127.0.0.1:{claim.ports[name]}" for name in names]
    cluster = {"chief": addresses[:1], "worker": addresses[1:]}
    stages = []
    try:
        for index in range(STAGES):
            command = [str(PYTHON), str(TIMED), "serve", str(index), json.dumps(cluster)]
            stages.append(
                subprocess.Popen(command, env=ENV, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            )
        for stage in stages:
            assert stage.stdout.readline() == "ready\n", "a stage did not come up"
        yield cluster
    finally:
        for stage in stages:
            stage.kill()
            stage.wait()
        claim.release()


def render_times(times, micro_batches):
    """Return the table; ratios are of the steps of one round."""
    one = statistics.median(times["one"])
    lines = [f"one process, one core: {one:.0f} ms a step", ""]
    lines += [
        "| schedule | M | ms a step | speed-up | bound ms | times the bound | efficiency |",
        "|---|---|---|---|---|---|---|",
    ]
    for schedule in ("1f1b", "gpipe"):
        for count in micro_batches:
            steps = times[f"{schedule} {count}"]
            share = (count + STAGES - 1) / count / STAGES
            over = statistics.median(step / (whole * share) for step, whole in zip(steps, times["one"], strict=True))
            faster = statistics.median(whole / step for step, whole in zip(steps, times["one"], strict=True))
            lines.append(
                f"| {schedule} | {count} | {statistics.median(steps):.0f} | {faster:.2f} | {one * share:.0f} "
                f"| {over:.2f} | {faster / STAGES:.2f} |"
            )
    return "\n".join(lines)


def render_memory(grown, options):
    """Return the table of what stages grew by."""
    head = f"\nbatch {options['rows']}, M = {options['micro_batches']}: MiB that a stage grew by\n"
    rows = [f"| {name} | {' | '.join(f'{mib:.0f}' for mib in stages)} |" for name, stages in grown.items()]
    return "\n".join([head, "| schedule | stage 0 | stage 1 |", "|---|---|---|", *rows])


if __name__ == "__main__":
    main()
