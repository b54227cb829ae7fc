"""Known failures that planning and preflight prevent, under each strategy that they can hit."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from training.errors import SpecError
from training.launch.api import LaunchOrder
from training.launch.environment import render_rank_environment
from training.plan.built import STRATEGIES, check_preflight, choose_environment
from training.plan.facts import DataFacts
from training.plan.job import TrackingPlan
from training.plan.jobs import plan_train_job
from training.plan.machine import EnvironmentFacts, HostFacts, MachineFacts
from training.plan.run_plan import plan_run
from training.plan.tf_config import parse_tf_config
from training.spec.loader import pipeline_from_mapping
from training.spec.parallelism import count_replicas

MACHINE = MachineFacts(
    hosts=(HostFacts(cores=4, slots=4, tpu=True, interfaces=("lo", "eth0")),),
    environments={name: EnvironmentFacts(name=name, python="python") for name in ("tensorflow", "mxnet", "control")},
)
ROWS = DataFacts(rows=610, validation_rows=0, feature_shape=(64,))
BUILT = [(engine, strategy) for engine, strategies in STRATEGIES.items() for strategy in strategies]
#: Horovod trains with two frameworks; where it is MXNet, that one is given for the engine.
BUILT.append(("mxnet", "horovod"))


def make_spec(framework, strategy, batch_size=60):
    engine = {"engine": framework}
    if strategy == "horovod":
        engine = {"engine": "horovod", "framework": "mxnet" if framework == "mxnet" else "tensorflow"}
    mapping = {
        "name": "small",
        "data": {"source": "digits"},
        "model": {"entrypoint": "training.models.mlp"},
        "train": {**engine, "strategy": strategy, "batch_size": batch_size},
        "cluster": {"workers": 2},
    }
    return pipeline_from_mapping(mapping, Path.cwd()).spec


@pytest.fixture(params=BUILT, ids=[f"{engine}-{strategy}" for engine, strategy in BUILT])
def built(request):
    return request.param


@pytest.fixture
def spec(built):
    return make_spec(*built)


def plan_job(spec, uri="", **more):
    paths = {name: Path("/run") / name for name in ("base_dir", "dataset", "model_dir", "checkpoints")}
    tracking = TrackingPlan(tracking_uri=uri, experiment="exp", run_name="")
    return plan_train_job(plan_run(spec, MACHINE), spec, MACHINE, run_id="r", tracking=tracking, **paths, **more)


def render_environments(spec, inherited):
    """Return the whole environment of each process of the training."""
    job = plan_job(spec)
    order = LaunchOrder(plan=job, folder=Path("/job"), mark="r/train")
    ports = {name: 9000 + number for number, name in enumerate(job.ports)}
    return [render_rank_environment(order, process, inherited, ports) for process in job.processes]


def test_no_process_is_told_of_another_cluster(spec):
    """K01: what a shell holds is left out; what a strategy needs is whole and consistent."""
    told = [env.get("TF_CONFIG") for env in render_environments(spec, {"TF_CONFIG": '{"cluster": {"worker": []},}'})]
    if spec.train.strategy not in ("multi_worker_mirrored", "parameter_server", "pipeline"):
        assert told == [None] * len(told)
        return
    tasks = [parse_tf_config(text).task for text in told]
    assert len({(task.type, task.index) for task in tasks}) == len(told)
    assert len({json.dumps(json.loads(text)["cluster"]) for text in told}) == 1


def test_an_engine_that_is_absent_or_broken_is_told_before_anything_starts(spec):
    """K07."""
    name = choose_environment(spec)
    broken = f"horovod 0.28.1 is not installed. Run: ganger env build {name}"
    absent = check_preflight(spec, replace(MACHINE, environments={}))
    found = {name: EnvironmentFacts(name=name, python="python", problem=broken)}
    assert [str(problem) for problem in absent] == [
        f"train.engine: the {name} environment is absent. Run: ganger env build {name}"
    ]
    assert [problem.message for problem in check_preflight(spec, replace(MACHINE, environments=found))] == [broken]


def test_no_process_is_switched_to_the_legacy_keras(spec):
    """K09: Ganger trains models of Keras 3, whatever a shell says."""
    environments = render_environments(spec, {"TF_USE_LEGACY_KERAS": "1", "HOME": "/h"})
    assert [(env.get("TF_USE_LEGACY_KERAS"), env["HOME"]) for env in environments] == [(None, "/h")] * len(environments)


@pytest.mark.parametrize(
    ("name", "text", "strategies"),
    [
        ("NCCL_SOCKET_IFNAME", "eth9", ("mirrored", "multi_worker_mirrored", "horovod")),
        ("NCCL_SOCKET_IFNAME", "^lo,eth", ("mirrored", "multi_worker_mirrored", "horovod")),
        ("NCCL_SOCKET_IFNAME", "eth", ()),
        ("NCCL_SOCKET_IFNAME", "=eth", ("mirrored", "multi_worker_mirrored", "horovod")),
        ("HOROVOD_GLOO_IFACE", "eth", ("horovod",)),
        ("HOROVOD_GLOO_IFACE", "eth0", ()),
    ],
)
def test_an_interface_that_does_not_exist_is_refused_where_it_is_used(spec, name, text, strategies):
    """K11."""
    problems = check_preflight(spec, replace(MACHINE, interface_variables={name: text}))
    wrong = (
        f"{name}: must name a network interface of 127.0.0.1: lo or eth0. Received: {text}. "
        f"Correct it in the environment that starts Ganger, or unset {name}."
    )
    assert [str(problem) for problem in problems] == ([wrong] if spec.train.strategy in strategies else [])


ADDRESSES = ("TF_CONFIG", "HOROVOD_GLOO_RENDEZVOUS_ADDR", "DMLC_NODE_HOST", "DMLC_PS_ROOT_URI")


def test_ranks_of_one_machine_meet_on_its_loopback_interface(spec):
    """K11."""
    inherited = {"HOROVOD_GLOO_IFACE": "eth0", "DMLC_NODE_HOST": "10.0.0.7", "DMLC_PS_ROOT_URI": "10.0.0.7"}
    for env in render_environments(spec, inherited):
        addresses = [text for name, text in env.items() if name in ADDRESSES]
        assert all("127.0.0.1" in text for text in addresses)
        if "HOROVOD_RANK" in env:
            assert env["HOROVOD_GLOO_IFACE"] == "lo"


@pytest.mark.parametrize("batch_size", [61, 1])
def test_a_batch_that_cannot_be_cut_into_equal_shares_is_refused(built, batch_size):
    """K22: the size is that of all replicas together, under any strategy."""
    engine, strategy = built
    if strategy == "pipeline" and batch_size == 1:
        with pytest.raises(SpecError, match=r"must be at most train.batch_size, 1, for each to have a row"):
            make_spec(engine, strategy, batch_size)
        return
    if count_replicas(strategy, workers=2) == 1:
        plan = plan_run(make_spec(engine, strategy, batch_size), MACHINE, ROWS)
        assert (plan.steps.global_batch_size, plan.steps.per_rank_batch_size) == (batch_size, batch_size)
        return
    with pytest.raises(SpecError, match=rf"train.batch_size: must be a multiple of the 2 .*Received: {batch_size}"):
        make_spec(engine, strategy, batch_size)


def test_threads_of_all_that_compute_fill_the_cores_and_no_more(spec):
    """K12."""
    plan = plan_run(spec, MACHINE)
    computing = [one for one in (*plan.ranks, *plan.services) if one.role == "worker" or one.role.startswith("stage")]
    assert sum(one.threads for one in computing) == 4
    assert all(one.threads >= 1 for one in (*plan.ranks, *plan.services))


@pytest.mark.parametrize(
    ("uri", "address"), [("http://tracking:5000", None), ("sqlite:////db", "http://127.0.0.1:{port:mlflow}")]
)
def test_a_model_file_that_logs_to_mlflow_reaches_the_run_from_the_first_rank_alone(spec, uri, address):
    """K39, K18: any other process has neither its address nor its password; a database gets a server."""
    plain, job = plan_job(spec, uri), plan_job(spec, uri, logs_to_mlflow=True)

    first, *others = job.processes
    assert (first.env.get("MLFLOW_TRACKING_URI"), first.env["MLFLOW_EXPERIMENT_NAME"]) == (address, "exp")
    assert [one.role for one in others if one.tracks] == (["mlflow"] if address else [])
    assert not any("MLFLOW_EXPERIMENT_NAME" in one.env for one in others)
    assert len(job.processes) - len(plain.processes) == len(job.ports) - len(plain.ports) == (address is not None)
    assert not any(one.tracks for one in plain.processes)
    assert [one.rank for one in job.processes] == list(range(len(job.processes)))
    assert (job.payload["relayed"], plain.payload["relayed"]) == (address is not None, False)
