"""What the ranks of a script are started with."""

import json
from pathlib import Path

import pytest

from training.plan.built import find_unbuilt
from training.plan.facts import DataFacts
from training.plan.job import TrackingPlan
from training.plan.machine import EnvironmentFacts, HostFacts, MachineFacts
from training.plan.render import render_plan
from training.plan.run_plan import plan_run
from training.plan.script_job import plan_script_job
from training.spec.loader import pipeline_from_mapping

MACHINE = MachineFacts(
    hosts=(HostFacts(cores=4),),
    environments={
        name: EnvironmentFacts(name=name, python=f"/{name}/python") for name in ("tensorflow", "mxnet", "control")
    },
)
SERVER = "http://tracking:5000"


def make_spec(engine="tensorflow", strategy="multi_worker_mirrored", **blocks):
    train = {"engine": engine, "strategy": strategy, "script": "own/train.py", "args": ["--epochs", "3", "a b"]}
    return pipeline_from_mapping(
        {"name": "own", "train": train, "cluster": {"workers": 2}, **blocks}, Path("/base")
    ).spec


def make_job(spec, uri=SERVER, dataset=None):
    facts = DataFacts(rows=103, validation_rows=20) if spec.data else None
    return plan_script_job(
        plan_run(spec, MACHINE, facts),
        spec,
        MACHINE,
        run_id="r",
        base_dir=Path("/base"),
        dataset=dataset,
        model_dir=Path("/run/model"),
        checkpoints=Path("/run/checkpoints"),
        tracking=TrackingPlan(tracking_uri=uri, experiment="exp", run_name="r"),
    )


def test_ranks_run_the_script_with_its_arguments():
    job = make_job(make_spec())

    command = ("/tensorflow/python", "-P", "-m", "training.script", "/base/own/train.py", "--epochs", "3", "a b")
    assert [process.argv for process in job.processes] == [command, command]
    assert {process.ready_on for process in job.processes} == {"output"}
    assert job.slots == 2
    assert job.outputs == ()


def test_the_chief_alone_runs_the_script_where_servers_do_the_rest():
    job = make_job(make_spec(strategy="parameter_server"), uri="sqlite:///mlflow.db")

    commands = [(process.role, process.argv[3], process.service) for process in job.processes]
    assert commands == [
        ("chief", "training.script", False),
        ("worker", "training.worker", True),
        ("worker", "training.worker", True),
        ("ps", "training.worker", True),
        ("mlflow", "training.tracking.relay", True),
    ]
    assert [process.rank for process in job.processes] == [0, 1, 2, 3, 4]
    assert json.loads(job.processes[0].env["TF_CONFIG"])["task"] == {"type": "chief", "index": 0}
    assert job.payload["engine"] == "tensorflow"
    assert job.slots == 2


def test_frameworks_find_what_they_expect():
    """K01: the same as for a model file."""
    tensorflow, horovod = make_job(make_spec()), make_job(make_spec("horovod", "horovod"))

    assert json.loads(tensorflow.processes[1].env["TF_CONFIG"])["task"] == {"type": "worker", "index": 1}
    assert [process.env.get("HOROVOD_RANK") for process in horovod.processes] == ["0", "1", None]
    assert horovod.processes[2].role == "rendezvous"
    assert horovod.ports == ("rendezvous",)


@pytest.mark.parametrize("strategy", ["dist_sync", "dist_async"])
def test_scripts_of_mxnet_find_the_key_value_store(strategy):
    """Its scheduler and servers are ended with the workers: no script of theirs would do it (K16)."""
    job = make_job(make_spec("mxnet", strategy, cluster={"workers": 2, "parameter_servers": 1}))

    assert [(process.role, process.argv[:4], process.service) for process in job.processes] == [
        ("worker", ("/mxnet/python", "-P", "-m", "training.script"), False),
        ("worker", ("/mxnet/python", "-P", "-m", "training.script"), False),
        ("scheduler", ("/mxnet/python", "-P", "-m", "training.worker"), True),
        ("server", ("/mxnet/python", "-P", "-m", "training.worker"), True),
    ]
    assert {rank.env["DMLC_ROLE"] for rank in job.processes[:2]} == {"worker"}
    assert {process.env["DMLC_PS_ROOT_PORT"] for process in job.processes} == {"{port:scheduler}"}
    assert job.payload["engine"] == "mxnet"


def test_what_a_model_of_mxnet_must_reach_is_for_its_script_to_say():
    spec = make_spec("mxnet", "dist_sync", data={"source": "digits"}, evaluate={"require": {"accuracy": 0.9}})

    (problem,) = find_unbuilt(spec)

    assert str(problem).startswith("evaluate.require: must not be given with a script of MXNet: the model that it ")


@pytest.mark.parametrize(
    ("uri", "address"), [(SERVER, None), ("sqlite:////home/mlflow.db", "http://127.0.0.1:{port:mlflow}")]
)
def test_rank_0_alone_is_told_where_the_mlflow_run_is(uri, address):
    """K18, K39: what is no server gets one, of the environment that has its drivers; no other rank has its password."""
    job = make_job(make_spec(), uri)

    ranks, services = job.processes[:2], job.processes[2:]
    assert [rank.env.get("MLFLOW_TRACKING_URI") for rank in ranks] == [address, None]
    assert [rank.env.get("MLFLOW_EXPERIMENT_NAME") for rank in ranks] == ["exp", None]
    assert [rank.tracks for rank in ranks] == [True, False]
    relays = [service.argv for service in services if service.role == "mlflow"]
    assert len(relays) == (address is not None)
    assert all(relay[:4] == ("/control/python", "-P", "-m", "training.tracking.relay") for relay in relays)
    assert ("mlflow" in job.ports) is bool(relays)


def test_folders_are_told_by_variables():
    data = {"source": "digits"}
    own, ours = make_job(make_spec()), make_job(make_spec(data=data), dataset=Path("/data/abc"))

    assert {name for name in own.processes[1].env if name.startswith("GANGER_")} == {
        "GANGER_MODEL_DIR", "GANGER_CHECKPOINT_DIR",
    }  # fmt: skip
    assert ours.processes[1].env["GANGER_DATASET"] == "/data/abc"


@pytest.mark.parametrize(
    ("blocks", "wanted"),
    [
        ({}, False),
        ({"data": {"source": "digits"}}, False),
        ({"register": {"model": "m"}}, True),
        ({"data": {"source": "digits"}, "evaluate": {"require": {"loss": {"max": 1.0}}}}, True),
    ],
)
def test_a_model_must_be_left_where_one_is_wanted(blocks, wanted):
    job = make_job(make_spec(**blocks), dataset=Path("/data"))

    assert job.outputs == (("/run/model/MLmodel",) if wanted else ())
    assert job.payload["wants_model"] is wanted


def test_a_gang_that_may_shrink_may_do_so_by_any_number():
    """A script cuts its batches itself; each size has its own addresses, and the way to MLflow."""
    spec = make_spec(cluster={"workers": 4, "min_workers": 2})
    job = make_job(spec, "sqlite:////home/mlflow.db")

    assert [gang.world_size for gang in job.smaller] == [3, 2]
    three = job.shrink(3)
    assert len(json.loads(three.processes[0].env["TF_CONFIG"])["cluster"]["worker"]) == 3
    assert three.ports == ("rank-0", "rank-1", "rank-2", "mlflow")
    assert [process.role for process in three.processes] == ["worker", "worker", "worker", "mlflow"]


def test_the_plan_shows_the_command_and_what_is_not_known():
    text = render_plan(plan_run(make_spec(), MACHINE))

    lines = text.splitlines()
    assert "script        python own/train.py --epochs 3 'a b'" in lines
    assert "              GANGER_MODEL_DIR = model/, GANGER_CHECKPOINT_DIR = checkpoints/" in lines
    assert "data          the script's own" in lines
    assert "steps         known to the script alone" in lines
    assert "gang          2 ranks on local" in lines


@pytest.mark.parametrize("strategy", ["mirrored", "central_storage", "tpu"])
def test_strategies_of_one_process_are_the_scripts_own_affair(strategy):
    (problem,) = find_unbuilt(make_spec(strategy=strategy))

    assert str(problem) == (
        "train.strategy: must be single, multi_worker_mirrored, parameter_server, horovod, dist_sync or "
        "dist_async with train.script. "
        f"Received: {strategy}. A script of one process makes its own strategy: use single."
    )
