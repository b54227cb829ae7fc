"""The gang of `dist_sync` and `dist_async`: workers whose end is the end, a scheduler and servers beside them."""

from pathlib import Path

import pytest

from training.errors import SpecError
from training.plan.built import check_preflight
from training.plan.job import TrackingPlan
from training.plan.jobs import plan_train_job
from training.plan.machine import EnvironmentFacts, HostFacts, MachineFacts
from training.plan.render import render_plan
from training.plan.run_plan import plan_run
from training.spec.loader import pipeline_from_mapping

TWO_HOSTS = (HostFacts(name="a", cores=4, slots=4), HostFacts(name="b", cores=2, slots=2))


def make_spec(strategy="dist_sync", workers=3, **cluster):
    mapping = {
        "name": "small",
        "data": {"source": "digits"},
        "model": {"entrypoint": "training.models.gluon_mlp"},
        "train": {"engine": "mxnet", "strategy": strategy, "batch_size": 60},
        "cluster": {"workers": workers, **cluster},
    }
    return pipeline_from_mapping(mapping, Path.cwd()).spec


def make_machine(*hosts):
    environment = EnvironmentFacts(name="mxnet", python="python")
    return MachineFacts(hosts=hosts or (HostFacts(cores=4, slots=4),), environments={"mxnet": environment})


def plan_job(spec, machine):
    paths = {name: Path("/run") / name for name in ("base_dir", "dataset", "model_dir", "checkpoints")}
    tracking = TrackingPlan(tracking_uri="", experiment="", run_name="")
    return plan_train_job(plan_run(spec, machine), spec, machine, run_id="run", tracking=tracking, **paths)


@pytest.mark.parametrize("strategy", ["dist_sync", "dist_async"])
def test_scheduler_and_servers_serve_the_workers(strategy):
    job = plan_job(make_spec(strategy, parameter_servers=2), make_machine(*TWO_HOSTS))

    assert [(p.rank, p.role, p.host, p.service) for p in job.processes] == [
        (0, "worker", "a", False),
        (1, "worker", "a", False),
        (2, "worker", "b", False),
        (3, "scheduler", "a", True),
        (4, "server", "a", True),
        (5, "server", "b", True),
    ]
    assert {p.argv for p in job.processes} == {("python", "-P", "-m", "training.worker")}
    assert {p.ready_on for p in job.processes} == {"event"}
    assert (job.world_size, job.slots) == (3, 3)


def test_all_members_are_told_of_the_same_store():
    job = plan_job(make_spec(parameter_servers=2), make_machine(*TWO_HOSTS))

    shared = {name: {p.env.get(name) for p in job.processes} for name in job.processes[0].env}

    assert shared["DMLC_PS_ROOT_URI"] == {"a"}
    assert shared["DMLC_PS_ROOT_PORT"] == {"{port:scheduler}"}
    assert (shared["DMLC_NUM_WORKER"], shared["DMLC_NUM_SERVER"]) == ({"3"}, {"2"})
    assert [p.env["DMLC_NODE_HOST"] for p in job.processes] == [p.host for p in job.processes]


def test_ports_rise_with_the_ranks_so_that_the_store_numbers_workers_as_the_gang_does():
    """K04: every member has a port of its own; an MXNet script takes `kv.rank` for its number."""
    job = plan_job(make_spec(workers=2), make_machine())

    ports = [p.env.get("PORT") for p in job.processes]

    assert ports == ["{port:rank-0}", "{port:rank-1}", None, "{port:rank-3}"]
    assert job.ports == ("scheduler", "rank-0", "rank-1", "rank-3")


def test_services_set_their_role_themselves():
    """With DMLC_ROLE in its environment, MXNet serves from within `import mxnet`, where SIGTERM does not reach it."""
    job = plan_job(make_spec(workers=2), make_machine())

    assert [p.env.get("DMLC_ROLE") for p in job.processes] == ["worker", "worker", None, None]


def test_servers_take_no_slots_and_a_store_is_elastic_where_it_is_synchronous():
    job = plan_job(make_spec(workers=4, parameter_servers=3, min_workers=2), make_machine())

    assert job.slots == 4
    assert [gang.world_size for gang in job.smaller] == [3, 2]
    with pytest.raises(SpecError, match=r"must not be given with strategy `dist_async`"):
        make_spec("dist_async", workers=4, min_workers=2)


@pytest.mark.parametrize("strategy", ["dist_sync", "dist_async"])
def test_batches_are_cut_equally(strategy):
    """K22."""
    with pytest.raises(SpecError, match=r"multiple of the 7 workers.*Received: 60\. Nearest: 56 or 63"):
        make_spec(strategy, workers=7)
    assert check_preflight(make_spec(strategy), make_machine()) == []


def test_the_plan_says_what_asynchronous_means():
    text = render_plan(plan_run(make_spec("dist_async", workers=2), make_machine()))

    assert "a step is 2 updates, each of one worker's rows and scaled by the global batch" in text
    assert "2 ranks and 2 services on local" in text


@pytest.mark.parametrize(("strategy", "refused"), [("single", True), ("dist_sync", False), ("dist_async", False)])
def test_servers_are_refused_where_nothing_is_kept_on_them(strategy, refused):
    if refused:
        with pytest.raises(SpecError, match=r"set train\.strategy to dist_sync or dist_async"):
            make_spec(strategy, workers=1, parameter_servers=2)
    else:
        make_spec(strategy, parameter_servers=2)
