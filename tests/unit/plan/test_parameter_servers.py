"""The gang of `parameter_server`: a chief whose end is the end, and services that it needs."""

import json
from pathlib import Path

import pytest

from training.plan.built import check_preflight
from training.plan.job import TrackingPlan
from training.plan.jobs import plan_train_job
from training.plan.machine import EnvironmentFacts, HostFacts, MachineFacts
from training.plan.render import render_plan
from training.plan.run_plan import plan_run
from training.plan.tf_config import parse_tf_config
from training.spec.loader import pipeline_from_mapping

TWO_HOSTS = (HostFacts(name="a", cores=4, slots=4), HostFacts(name="b", cores=2, slots=2))


def make_spec(workers=3, **cluster):
    mapping = {
        "name": "small",
        "data": {"source": "digits"},
        "model": {"entrypoint": "training.models.mlp"},
        "train": {"engine": "tensorflow", "strategy": "parameter_server", "batch_size": 60, "warmup_steps": 5},
        "cluster": {"workers": workers, **cluster},
    }
    return pipeline_from_mapping(mapping, Path.cwd()).spec


def make_machine(*hosts):
    environment = EnvironmentFacts(name="tensorflow", python="python")
    return MachineFacts(hosts=hosts or (HostFacts(cores=4, slots=4),), environments={"tensorflow": environment})


def plan_job(spec, machine):
    paths = {name: Path("/run") / name for name in ("base_dir", "dataset", "model_dir", "checkpoints")}
    tracking = TrackingPlan(tracking_uri="", experiment="", run_name="")
    return plan_train_job(plan_run(spec, machine), spec, machine, run_id="run", tracking=tracking, **paths)


def test_the_chief_leads_workers_and_servers_that_serve():
    job = plan_job(make_spec(parameter_servers=2), make_machine(*TWO_HOSTS))

    roles = [(p.rank, p.role, p.host, p.local_rank, p.threads, p.service) for p in job.processes]

    assert roles == [
        (0, "chief", "a", 0, 2, False),
        (1, "worker", "a", 0, 2, True),
        (2, "worker", "a", 1, 2, True),
        (3, "worker", "b", 0, 2, True),
        (4, "ps", "a", 0, 1, True),
        (5, "ps", "b", 0, 1, True),
    ]
    assert {p.argv for p in job.processes} == {("python", "-P", "-m", "training.worker")}
    assert {p.ready_on for p in job.processes} == {"event"}
    assert job.world_size == 1


def test_all_members_are_told_of_each_other():
    """K01, K04."""
    job = plan_job(make_spec(), make_machine())

    configs = [parse_tf_config(process.env["TF_CONFIG"]) for process in job.processes]

    assert len({json.dumps(config.model_dump()["cluster"]) for config in configs}) == 1
    assert [(config.task.type, config.task.index) for config in configs] == [
        ("chief", 0), ("worker", 0), ("worker", 1), ("worker", 2), ("ps", 0),
    ]  # fmt: skip
    addresses = [address for members in configs[0].cluster.values() for address in members]
    assert addresses == [f"127.0.0.1:{{port:{name}}}" for name in job.ports]
    assert job.ports == ("rank-0", "rank-1", "rank-2", "rank-3", "rank-4")


def test_each_worker_takes_a_slot_and_nobody_else(monkeypatch):
    """K13: chief and servers wait while the workers compute."""
    spec = make_spec(workers=4, parameter_servers=3)

    assert plan_job(spec, make_machine()).slots == 4
    assert check_preflight(spec, make_machine()) == []
    (problem,) = check_preflight(spec, make_machine(HostFacts(cores=4, slots=3)))
    assert "must be at most the slots of 127.0.0.1, 3. Received: 4." in str(problem)


@pytest.mark.parametrize(("workers", "says"), [(1, False), (3, True)])
def test_the_plan_says_that_updates_have_no_order(workers, says):
    lines = render_plan(plan_run(make_spec(workers=workers), make_machine())).splitlines()

    note = f"strategy parameter_server is asynchronous: a step is {workers} updates, and no run equals another"
    assert (f"note          {note}" in lines) is says
    assert f"gang          1 rank and {workers + 1} services on local, seed 7" in lines
