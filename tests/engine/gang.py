"""Starts real ranks for a test, without the supervisor, and gives back what they said."""

import json
import os
import socket
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from training import settings
from training.plan.job import JobPlan, ProcessPlan
from training.run.event import parse_line

PYTHON = settings.REPOSITORY / ".engines" / "tensorflow" / "bin" / "python"
TIMEOUT_S = 200


@dataclass
class Output:
    """What one rank printed, cut at the `BEGIN` lines of `trainings.py`."""

    exit_code: int = 0
    text: str = ""
    events: dict = field(default_factory=dict)
    failures: dict = field(default_factory=dict)
    told: dict = field(default_factory=dict)

    def of(self, name, kind):
        """Return the events of one kind of the training `name`."""
        return [event for event in self.events.get(name, []) if event.event == kind]

    def result(self, name):
        """Return what the training `name` handed on."""
        assert name not in self.failures, self.failures[name]
        return self.of(name, "result")[-1].values


def run_gang(folder: Path, command, payload, world_size=1, threads=1, env=None):
    """Run `command` as every rank of a gang and return their outputs, rank by rank."""
    folder.mkdir(parents=True)
    processes = tuple(ProcessPlan(rank=rank, argv=("-",), threads=threads) for rank in range(world_size))
    plan = JobPlan(run_id="test", name="train", processes=processes, payload=payload)
    (folder / "job.json").write_text(plan.model_dump_json())
    ports = pick_ports(world_size)
    started = [start_rank(folder, command, rank, ports, env or {}) for rank in range(world_size)]
    try:
        return [read_output(process, folder / f"rank-{rank}.log") for rank, process in enumerate(started)]
    finally:
        for process in started:
            if process.poll() is None:
                process.kill()
                process.wait()


def start_rank(folder, command, rank, ports, env):
    workers = [f"127.0.0.1:{port}" for port in ports]
    variables = {
        **os.environ,
        settings.JOB_DIR: str(folder),
        settings.RANK: str(rank),
        "TF_CONFIG": json.dumps({"cluster": {"worker": workers}, "task": {"type": "worker", "index": rank}}),
        "TF_CPP_MIN_LOG_LEVEL": "2",
        "CUDA_VISIBLE_DEVICES": "",
        "PYTHONWARNINGS": "default",
        **env,
    }
    with (folder / f"rank-{rank}.log").open("wb") as log:
        return subprocess.Popen([str(PYTHON), *map(str, command)], env=variables, stdout=log, stderr=subprocess.STDOUT)


def read_output(process, log):
    exit_code = process.wait(timeout=TIMEOUT_S)
    output = Output(exit_code=exit_code, text=log.read_text(errors="replace"))
    name = ""
    for line in output.text.split("\n"):
        text, event = parse_line(line)
        word, _, rest = text.partition(" ")
        if event is not None:
            output.events.setdefault(name, []).append(event)
        elif word == "BEGIN":
            name = json.loads(rest)["name"]
        elif word == "FAILED":
            failure = json.loads(rest)
            output.failures[failure["name"]] = failure
        elif word in ("THREADS", "UPSTREAM"):
            output.told.setdefault(word, []).append(json.loads(rest))
    return output


def pick_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports
