"""Preflight: what cannot run is refused by name before anything starts (K07, K13)."""

from dataclasses import replace
from pathlib import Path

import pytest

from training.plan.built import STRATEGIES, check_preflight, find_absent
from training.plan.framework import choose_environment
from training.plan.machine import EnvironmentFacts, HostFacts, MachineFacts
from training.spec.loader import pipeline_from_mapping


def make_spec(engine="tensorflow", strategy="single", **blocks):
    stages = {"pipeline": {"stages": 2}} if strategy == "pipeline" else {}
    mapping = {
        "name": "small",
        "data": {"source": "digits"},
        "model": {"entrypoint": "training.models.mlp"},
        "train": {"engine": engine, "strategy": strategy, **stages},
        **blocks,
    }
    return pipeline_from_mapping(mapping, Path.cwd()).spec


def machine(**problems):
    facts = {name: EnvironmentFacts(name=name, python="python", problem=text) for name, text in problems.items()}
    return MachineFacts(environments=facts)


@pytest.mark.parametrize(("engine", "strategy"), [(e, s) for e, names in STRATEGIES.items() for s in names])
def test_built_strategies_pass(engine, strategy):
    facts = replace(machine(tensorflow="", mxnet=""), hosts=(HostFacts(slots=2, tpu=True),))

    assert check_preflight(make_spec(engine, strategy), facts) == []


def test_a_tpu_that_is_not_there_is_refused_in_a_sentence():
    (problem,) = check_preflight(make_spec(strategy="tpu"), machine(tensorflow=""))

    assert str(problem) == (
        "train.strategy: tpu needs a TPU, and none is here: TPU_NAME is not set, and there is no device /dev/accel0. "
        "Set TPU_NAME, or choose another strategy."
    )


def test_unbuilt_strategies_are_refused_by_name(monkeypatch):
    monkeypatch.setitem(STRATEGIES, "mxnet", ("single",))
    (problem,) = check_preflight(make_spec("mxnet", "model_parallel"), machine(tensorflow="", mxnet=""))

    assert problem.field == "train.strategy"
    assert "mxnet" in problem.message
    assert "model_parallel" in problem.message


def test_unbuilt_backends_are_refused_by_name():
    (problem,) = check_preflight(make_spec(cluster={"backend": "slurm"}), machine(tensorflow=""))

    assert problem.field == "cluster.backend"
    assert "slurm" in problem.message


def test_an_absent_environment_is_named_with_the_way_out():
    (problem,) = find_absent(make_spec(), MachineFacts())

    assert str(problem) == "train.engine: the tensorflow environment is absent. Run: ganger env build tensorflow"


def test_a_broken_environment_says_why():
    (problem,) = find_absent(make_spec(), machine(tensorflow="numpy 1.26 found, 2.0.2 wanted."))

    assert "numpy 1.26 found" in str(problem)


def test_horovod_uses_the_environment_of_its_framework():
    assert choose_environment(make_spec("horovod", "horovod")) == "tensorflow"
    assert choose_environment(make_spec("mxnet", "single")) == "mxnet"
