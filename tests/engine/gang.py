"""Starts real ranks for a test, without the supervisor, and gives back what they said."""

import json
import os
import socket
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from training import settings
from training.launch.environment import fill_ports, render_thread_variables
from training.plan.framework import choose_environment
from training.plan.job import JobPlan, ProcessPlan
from training.plan.machine import HostFacts
from training.plan.placement import place_ranks
from training.plan.ranks import choose_ports, choose_ranks, place_services, render_rank_env
from training.run.event import parse_line
from training.spec.parallelism import count_processes

PYTHONS = {name: settings.REPOSITORY / ".engines" / name / "bin" / "python" for name in ("tensorflow", "mxnet")}
PYTHON = PYTHONS["tensorflow"]
#: Ends what hangs: a gang that trains everything took 64 to 151 s beside other work, and over 200 s beside much.
TIMEOUT_S = 400


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


def run_gang(folder: Path, command, payload, spec):
    """Run `command` as every rank of the gang of `spec`, beside its services, and return their outputs."""
    (folder / "tmp").mkdir(parents=True)
    workers = place_ranks(count_processes(spec.train.strategy, spec.cluster.workers), [HostFacts()], threads=1)
    ranks, services = choose_ranks(spec, workers), place_services(spec, workers)
    ports = pick_ports(choose_ports(spec, workers))
    processes = [ProcessPlan(rank=rank.rank, argv=("-",), role=rank.role) for rank in ranks]
    processes += [ProcessPlan(rank=one.rank, argv=("-",), role=one.role, service=True) for one in services]
    plan = JobPlan(run_id="test", name="train", processes=tuple(processes), payload=payload)
    (folder / "job.json").write_text(plan.model_dump_json())
    commands = {rank.rank: (command, render_rank_env(spec, workers, rank.rank)) for rank in ranks}
    commands |= {one.rank: (("-m", *one.module), one.env) for one in services}
    started = []
    try:
        for number, (argv, env) in commands.items():
            env = name_rank(folder, number) | {name: fill_ports(value, ports) for name, value in env.items()}
            argv = [fill_ports(str(text), ports) for text in argv]
            python = PYTHONS[choose_environment(spec)]
            started.append(start_process(folder / f"rank-{number}.log", argv, env, python))
        return [read_output(process, folder / f"rank-{rank.rank}.log") for process, rank in zip(started, ranks)]  # noqa: B905 - services follow
    finally:
        for process in started:
            if process.poll() is None:
                process.kill()
                process.wait()


def name_rank(folder, rank):
    return {settings.JOB_DIR: str(folder), settings.RANK: str(rank), settings.TMPDIR: str(folder / "tmp")}


def start_process(log, command, env, python=PYTHON):
    variables = {
        **os.environ,
        "TF_CPP_MIN_LOG_LEVEL": "2",
        "CUDA_VISIBLE_DEVICES": "",
        "PYTHONWARNINGS": "default",
        **render_thread_variables(1),
        **env,
    }
    with log.open("wb") as stream:
        argv = [str(python), *map(str, command)]
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


def pick_ports(names):
    sockets = {name: socket.socket() for name in names}
    for each in sockets.values():
        each.bind(("127.0.0.1", 0))
    ports = {name: each.getsockname()[1] for name, each in sockets.items()}
    for each in sockets.values():
        each.close()
    return ports
