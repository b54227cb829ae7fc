"""Preflight: what cannot run is refused by name before anything starts (K07, K13)."""

from dataclasses import replace
from pathlib import Path

import pytest

from training.plan.built import STRATEGIES, check_preflight, choose_environment, find_absent
from training.plan.machine import EnvironmentFacts, HostFacts, MachineFacts
from training.spec.loader import pipeline_from_mapping


def make_spec(engine="tensorflow", strategy="single", **blocks):
    mapping = {
        "name": "small",
        "data": {"source": "digits"},
        "model": {"entrypoint": "training.models.mlp"},
        "train": {"engine": engine, "strategy": strategy},
        **blocks,
    }
    return pipeline_from_mapping(mapping, Path.cwd()).spec


def machine(**problems):
    facts = {name: EnvironmentFacts(name=name, python="python", problem=text) for name, text in problems.items()}
    return MachineFacts(environments=facts)


@pytest.mark.parametrize(("engine", "strategy"), [(e, s) for e, names in STRATEGIES.items() for s in names])
def test_built_strategies_pass(engine, strategy):
    facts = replace(machine(tensorflow=""), hosts=(HostFacts(tpu=True),))

    assert check_preflight(make_spec(engine, strategy), facts) == []


def test_a_tpu_that_is_not_there_is_refused_in_a_sentence():
    (problem,) = check_preflight(make_spec(strategy="tpu"), machine(tensorflow=""))

    assert str(problem) == (
        "train.strategy: tpu needs a TPU, and none is here: TPU_NAME is not set, and there is no device /dev/accel0. "
        "Set TPU_NAME, or choose another strategy."
    )


@pytest.mark.parametrize(
    ("engine", "strategy"), [("mxnet", "dist_sync"), ("mxnet", "single"), ("tensorflow", "pipeline")]
)
def test_unbuilt_strategies_are_refused_by_name(engine, strategy):
    (problem,) = check_preflight(make_spec(engine, strategy), machine(tensorflow="", mxnet=""))

    assert problem.field == "train.strategy"
    assert engine in problem.message
    assert strategy in problem.message


def test_unbuilt_fields_and_backends_are_refused_by_name():
    spec = make_spec(
        cluster={"backend": "slurm"},
        model={"entrypoint": "training.models.mlp", "initialize_from": "models:/a@b", "freeze": ["dense*"]},
    )

    fields = [problem.field for problem in check_preflight(spec, machine(tensorflow=""))]

    assert fields == ["cluster.backend", "model.initialize_from", "model.freeze"]


def test_more_workers_than_slots_are_refused_with_what_is_wanted_what_there_is_and_what_to_do():
    spec = make_spec(strategy="multi_worker_mirrored", cluster={"workers": 4})
    here = machine(tensorflow="")

    def check(slots):
        return list(map(str, check_preflight(spec, replace(here, hosts=(HostFacts(cores=2, slots=slots),)))))

    assert check(3) == [
        "cluster.workers: must need at most the 3 slots of 127.0.0.1. Received: 4. "
        "Use fewer workers, or set GANGER_SLOTS=4 to let ranks share cores."
    ]
    assert check(4) == []


def test_an_absent_environment_is_named_with_the_way_out():
    (problem,) = find_absent(make_spec(), MachineFacts())

    assert str(problem) == "train.engine: the tensorflow environment is absent. Run: ganger env build tensorflow"


def test_a_broken_environment_says_why():
    (problem,) = find_absent(make_spec(), machine(tensorflow="numpy 1.26 found, 2.0.2 wanted."))

    assert "numpy 1.26 found" in str(problem)


def test_horovod_uses_the_environment_of_its_framework():
    assert choose_environment(make_spec("horovod", "horovod")) == "tensorflow"
    assert choose_environment(make_spec("mxnet", "single")) == "mxnet"
