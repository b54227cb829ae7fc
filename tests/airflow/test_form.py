from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from airflow.exceptions import ParamValidationError
from airflow.serialization.serialized_objects import DagSerialization
from specs import SPEC

from ganger.dag_factory import build_dag
from ganger.form import apply_params, make_params
from training.errors import SpecError
from training.spec.file import PipelineFile
from training.spec.loader import load_pipeline


@pytest.fixture
def pipeline(folder: Path) -> PipelineFile:
    path = folder / "p.yaml"
    path.write_text(SPEC.format(name="p"))
    return load_pipeline(path)


def trigger(pipeline: PipelineFile, conf: dict[str, Any]) -> dict[str, Any]:
    """Check `conf` as Airflow's API does when a run is created (`SerializedDAG.create_dagrun`)."""
    dag = DagSerialization.from_dict(DagSerialization.to_dict(build_dag(pipeline)))
    merged = dag.params.deep_merge(conf)
    merged.validate()
    return dict(merged.dump())


def apply(pipeline: PipelineFile, params: dict[str, Any], refuse_unknown: bool = True) -> PipelineFile:
    return apply_params(pipeline, params, refuse_unknown=refuse_unknown)


def test_the_form_offers_the_usual_fields_with_their_bounds(pipeline: PipelineFile) -> None:
    params = make_params(pipeline.spec)
    assert {name: param.value for name, param in params.items()} == {
        "epochs": 3,
        "batch_size": 64,
        "strategy": "multi_worker_mirrored",
        "workers": 2,
        "seed": 7,
        "model_params": {"hidden": [16]},
    }
    assert params["epochs"].schema == {"type": "integer", "minimum": 1, "maximum": 100_000, "title": "Epochs"}
    assert "parameter_server" in params["strategy"].schema["enum"]
    assert all(param.description for param in params.values())


def test_the_strategies_are_those_of_the_engine(pipeline: PipelineFile) -> None:
    horovod = apply(pipeline, {"train.engine": "horovod", "train.strategy": "horovod"})
    assert make_params(horovod.spec)["strategy"].schema["enum"] == ["horovod"]


def test_a_file_that_asks_for_more_than_the_form_raises_its_bound(pipeline: PipelineFile) -> None:
    large = apply(pipeline, {"train.epochs": 2_000_000})
    assert make_params(large.spec)["epochs"].schema["maximum"] == 2_000_000


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("batch_size", "32", "is not of type 'integer'"),
        ("batch_size", -1, "less than the minimum of 1"),
        ("epochs", 1e9, "greater than the maximum"),
        ("epochs", None, "is not of type 'integer'"),
        ("epochs", 2.5, "is not of type 'integer'"),
        ("workers", 0, "less than the minimum of 1"),
        ("strategy", "mültiwörker", "is not one of"),
        ("seed", 2**32, "greater than or equal to the maximum"),
        ("model_params", [1], "is not of type 'object'"),
    ],
)
def test_the_trigger_refuses_a_wrong_value_with_field_and_rule(
    pipeline: PipelineFile, name: str, value: Any, rule: str
) -> None:
    """K53."""
    with pytest.raises(ParamValidationError, match=rf"(?s){name}.*{rule}|{rule}") as caught:
        trigger(pipeline, {name: value})
    assert rule in str(caught.value)


@pytest.mark.parametrize(
    ("params", "field", "words"),
    [
        ({"epochs": "32"}, "train.epochs", "32"),
        ({"epochs": 2.0}, "train.epochs", "whole number"),
        ({"epochs": True}, "train.epochs", "true"),
        ({"workers": None}, "cluster.workers", "null"),
        ({"epoch": 3}, "params.epoch", "Did you mean epochs?"),
        ({"größe": 3}, "params.größe", "trigger form"),
        ({"train.epoch": 3}, "train.epoch", "epochs"),
        ({"train.stop_grace_s": -1}, "train.stop_grace_s", "-1"),
    ],
)
def test_what_the_trigger_lets_through_the_step_refuses(
    pipeline: PipelineFile, params: dict[str, Any], field: str, words: str
) -> None:
    """K53."""
    with pytest.raises(SpecError, match=words) as caught:
        apply(pipeline, params)
    assert [problem.field for problem in caught.value.problems] == [field]


def test_all_unknown_names_are_told_at_once(pipeline: PipelineFile) -> None:
    with pytest.raises(SpecError) as caught:
        apply(pipeline, {"epoch": 1, "batch": 2})
    assert len(caught.value.problems) == 2


def test_the_form_as_it_is_changes_nothing(pipeline: PipelineFile) -> None:
    assert apply(pipeline, trigger(pipeline, {})) is pipeline


def test_values_of_the_form_and_dotted_paths_change_the_spec(pipeline: PipelineFile) -> None:
    entered = {"epochs": 9, "workers": 1, "model_params": {"learning_rate": 0.1}, "train.stop_grace_s": 5}
    changed = apply(pipeline, trigger(pipeline, entered))
    spec = changed.spec
    assert (spec.train.epochs, spec.cluster.workers, spec.train.stop_grace_s) == (9, 1, 5)
    assert spec.model is not None
    assert spec.model.params == {"learning_rate": 0.1}
    assert (changed.path, changed.base_dir) == (pipeline.path, pipeline.base_dir)
    assert spec.train.batch_size == 64


def test_parameters_of_somebody_elses_dag_are_let_be(pipeline: PipelineFile) -> None:
    assert apply(pipeline, {"region": "north", "a.b": 1}, refuse_unknown=False) is pipeline


@pytest.fixture
def script(folder: Path) -> PipelineFile:
    path = folder / "own.yaml"
    path.write_text(
        "name: own\ntrain: {engine: horovod, script: train.py, args: [--epochs, '3']}\ncluster: {workers: 2}\n"
    )
    return load_pipeline(path)


def test_a_script_is_offered_its_arguments_and_nothing_that_it_decides_itself(script: PipelineFile) -> None:
    assert {name: param.value for name, param in make_params(script.spec).items()} == {
        "strategy": "horovod", "workers": 2, "args": ["--epochs", "3"],
    }  # fmt: skip
    assert apply(script, trigger(script, {})) is script
    changed = apply(script, trigger(script, {"args": ["--epochs", "5"]}))
    assert changed.spec.train.args == ("--epochs", "5")


def test_arguments_of_a_script_are_texts(script: PipelineFile) -> None:
    """K53."""
    with pytest.raises(ParamValidationError, match="is not of type 'string'"):
        trigger(script, {"args": ["--epochs", 5]})


def test_the_page_of_a_script_says_what_is_run(script: PipelineFile) -> None:
    page = build_dag(script).doc_md or ""
    assert "| script | `train.py --epochs 3` |" in page
    assert "global batch" not in page
    assert "| data |" not in page
