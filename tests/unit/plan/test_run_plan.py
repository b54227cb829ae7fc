"""The plan of a training: pure, printable, equal for equal input."""

import json
from pathlib import Path

import pytest

from training.errors import SpecError
from training.plan.built import STRATEGIES
from training.plan.facts import DataFacts
from training.plan.machine import EnvironmentFacts, HostFacts, MachineFacts
from training.plan.render import render_plan
from training.plan.run_plan import RunPlan, plan_run
from training.settings import REPOSITORY
from training.spec.loader import load_pipeline, pipeline_from_mapping
from training.spec.pipeline import DataSpec
from training.steps.framework import recognise_framework

GOLDEN = Path(__file__).parent.parent.parent / "golden"
PIPELINES = sorted((REPOSITORY / "dags" / "pipelines").glob("*.yaml"))
MACHINE = MachineFacts(
    hosts=(HostFacts(cores=2),),
    environments={name: EnvironmentFacts(name=name, python="python") for name in ("tensorflow", "mxnet")},
)
DIGITS = DataFacts(rows=1438, validation_rows=359, feature_shape=(64,), classes=10)


def make_spec(**train):
    mapping = {
        "name": "small",
        "data": {"source": "digits"},
        "model": {"entrypoint": "training.models.mlp"},
        "train": {"engine": "tensorflow", "strategy": "multi_worker_mirrored", "batch_size": 64, **train},
        "cluster": {"workers": 2},
    }
    return pipeline_from_mapping(mapping, Path.cwd()).spec


@pytest.mark.parametrize("path", PIPELINES, ids=lambda path: path.stem)
def test_shipped_pipelines_have_the_reviewed_plan(path):
    """To review a change: UPDATE by copying what the failure prints into tests/golden."""
    spec = recognise_framework(load_pipeline(path)).spec
    text = render_plan(plan_run(spec, MACHINE, DIGITS)) + "\n"

    assert text == (GOLDEN / f"{path.stem}.plan.txt").read_text()


def test_budgets_and_patterns_are_carried_and_shown():
    """K17."""
    patterns = [{"pattern": "quota", "treat_as": "temporary"}, {"pattern": "^nets", "treat_as": "spec"}]
    plan = plan_run(make_spec(restarts=1, user_restarts=3, failure_patterns=patterns), MACHINE, DIGITS)

    assert [one.model_dump() for one in plan.limits.failure_patterns] == patterns
    assert (plan.limits.restarts, plan.limits.user_restarts) == (1, 3)
    lines = render_plan(plan).splitlines()
    assert "restarts      1 after infrastructure failures, 3 after failures of the user's code" in lines
    assert lines[lines.index("failures      'quota' is treated as temporary") + 1] == (
        "              '^nets' is treated as spec"
    )


def test_ranks_are_told_of_each_other_through_tf_config():
    plan = plan_run(make_spec(), MACHINE, DIGITS)

    configs = [json.loads(rank.env["TF_CONFIG"]) for rank in plan.ranks]

    assert configs[0]["cluster"] == configs[1]["cluster"]
    assert [config["task"] for config in configs] == [{"type": "worker", "index": 0}, {"type": "worker", "index": 1}]
    assert plan.ports == ("rank-0", "rank-1")
    assert all(f"{{port:{port}}}" in plan.ranks[0].env["TF_CONFIG"] for port in plan.ports)


def test_a_plan_survives_json():
    plan = plan_run(make_spec(), MACHINE, DIGITS)

    assert RunPlan.model_validate_json(plan.model_dump_json()) == plan
    assert RunPlan.model_validate_json(plan.model_dump_json()).digest == plan.digest


def test_the_digest_tells_plans_apart():
    assert plan_run(make_spec(), MACHINE, DIGITS).digest != plan_run(make_spec(seed=8), MACHINE, DIGITS).digest


def test_unknown_rows_leave_the_steps_open():
    plan = plan_run(make_spec(), MACHINE, None)

    assert plan.steps is None
    assert "known after prepare_data" in render_plan(plan)


def test_a_batch_that_does_not_divide_is_refused():
    """K22."""
    with pytest.raises(SpecError, match=r"batch_size"):
        plan_run(make_spec(batch_size=63), MACHINE, DIGITS)


def test_fewer_rows_than_a_batch_are_refused():
    """K25: never trained with 0 steps."""
    with pytest.raises(SpecError, match=r"3.*64"):
        plan_run(make_spec(), MACHINE, DataFacts(rows=3, validation_rows=1, feature_shape=(64,), classes=10))


def test_the_plan_says_what_is_not_built(monkeypatch):
    monkeypatch.setitem(STRATEGIES, "mxnet", ("single",))
    plan = plan_run(make_spec(engine="mxnet", strategy="model_parallel"), MACHINE, DIGITS)

    assert plan.problems == (
        "train.strategy: engine mxnet with strategy model_parallel is not built yet. "
        "Built: tensorflow/single, tensorflow/mirrored, tensorflow/multi_worker_mirrored, tensorflow/parameter_server, "
        "tensorflow/central_storage, tensorflow/tpu, tensorflow/pipeline, horovod/horovod, mxnet/single.",
    )


def test_the_plan_says_how_long_the_gang_waits_for_slots():
    spec = make_spec()
    patient = spec.model_copy(update={"cluster": spec.cluster.model_copy(update={"queue_timeout_s": 90.0})})

    assert "waits" not in render_plan(plan_run(spec, MACHINE, DIGITS))
    assert "seed 7, waits for free slots for at most 90 s" in render_plan(plan_run(patient, MACHINE, DIGITS))


@pytest.mark.parametrize(
    ("train", "line"),
    [
        ({}, "steps         counted when the training starts"),
        ({"steps_per_epoch": 5, "epochs": 2}, "steps         10 = 2 epochs x 5, global batch 64 (32 per replica)"),
    ],
)
def test_rows_of_the_model_file_are_told_with_who_cuts_them(train, line):
    spec = make_spec()
    data = DataSpec(source="build_dataset", sharding="own")
    own = spec.model_copy(update={"data": data, "train": spec.train.model_copy(update=train)})

    lines = render_plan(plan_run(own, MACHINE)).splitlines()

    assert "data          build_dataset of the model file, which gives each replica its own share" in lines
    assert line in lines
