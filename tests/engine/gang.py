"""Starts real ranks for a test, without the supervisor, and gives back what they said."""

import json
import os
import socket
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from training import settings
from training.launch.environment import fill_ports
from training.plan.job import JobPlan, ProcessPlan
from training.plan.machine import HostFacts
from training.plan.ranks import RENDEZVOUS_PORT, place_ranks, render_horovod_env
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


def tf_config(rank, ports):
    """Return what a rank of a multi-worker strategy is told."""
    workers = [f"127.0.0.1:{port}" for port in ports]
    return {"TF_CONFIG": json.dumps({"cluster": {"worker": workers}, "task": {"type": "worker", "index": rank}})}


def horovod_env(rank, ports):
    """Return what a rank of Horovod is told; the rendezvous server has the first of the ports."""
    placements = place_ranks(len(ports), [HostFacts()])
    env = render_horovod_env(placements, rank)
    return {name: fill_ports(value, {RENDEZVOUS_PORT: ports[0]}) for name, value in env.items()}


def run_gang(folder: Path, command, payload, world_size=1, threads=1, make_env=tf_config, env=None):
    """Run `command` as every rank of a gang and return their outputs, rank by rank."""
    folder.mkdir(parents=True)
    processes = tuple(ProcessPlan(rank=rank, argv=("-",), threads=threads) for rank in range(world_size))
    plan = JobPlan(run_id="test", name="train", processes=processes, payload=payload)
    (folder / "job.json").write_text(plan.model_dump_json())
    ports = pick_ports(world_size)
    started = []
    try:
        if make_env is horovod_env:
            module = ("-m", "training.engines.horovod_rendezvous", "127.0.0.1", ports[0], f"127.0.0.1:{world_size}")
            started.append(start_process(folder / "rendezvous.log", module, {}))
        ranks = [
            start_process(
                folder / f"rank-{rank}.log", command, name_rank(folder, rank) | make_env(rank, ports) | (env or {})
            )
            for rank in range(world_size)
        ]
        started += ranks
        return [read_output(process, folder / f"rank-{rank}.log") for rank, process in enumerate(ranks)]
    finally:
        for process in started:
            if process.poll() is None:
                process.kill()
                process.wait()


def name_rank(folder, rank):
    return {settings.JOB_DIR: str(folder), settings.RANK: str(rank)}


def start_process(log, command, env):
    variables = {
        **os.environ,
        "TF_CPP_MIN_LOG_LEVEL": "2",
        "CUDA_VISIBLE_DEVICES": "",
        "PYTHONWARNINGS": "default",
        **env,
    }
    with log.open("wb") as stream:
        argv = [str(PYTHON), *map(str, command)]
        return subprocess.Popen(argv, env=variables, stdout=stream, stderr=subprocess.STDOUT)


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
