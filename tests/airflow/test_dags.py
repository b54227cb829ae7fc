from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.serialization.serialized_objects import DagSerialization
from specs import SPEC

from ganger.dag_factory import build_dag
from ganger.operators import (
    HorovodTrainingOperator,
    MXNetTrainingOperator,
    PipelineStageOperator,
    TensorFlowTrainingOperator,
)
from ganger.stage_order import check_stage_tasks
from training.errors import SpecError
from training.settings import REPOSITORY
from training.spec.file import PipelineFile
from training.spec.loader import load_pipeline, pipeline_from_mapping

TASKS = {"prepare_data", "provision_cluster", "train", "evaluate", "register_model", "teardown_cluster"}


def edges(dag: Any) -> set[tuple[str, str]]:
    return {(task.task_id, down) for task in dag.tasks for down in task.downstream_task_ids}


def make(**blocks: Any) -> PipelineFile:
    spec = {
        "name": "p",
        "data": {"source": "digits"},
        "model": {"entrypoint": "training.models.mlp"},
        "train": {"engine": "tensorflow"},
    }
    return pipeline_from_mapping({**spec, **blocks}, REPOSITORY)


@pytest.fixture(scope="module")
def bag() -> DagBag:
    return DagBag(REPOSITORY / "dags")


def test_all_shipped_dags_import(bag: DagBag) -> None:
    assert bag.import_errors == {}
    assert {"digits", "hand_written_example"} <= set(bag.dags)
    assert not [dag_id for dag_id, dag in bag.dags.items() if "broken spec" in dag.tags]


def test_a_pipeline_has_the_tasks_and_edges_of_the_design(bag: DagBag) -> None:
    dag = bag.dags["digits"]
    assert set(dag.task_ids) == TASKS
    assert edges(dag) == {
        ("prepare_data", "train"),
        ("provision_cluster", "train"),
        ("train", "evaluate"),
        ("evaluate", "register_model"),
        ("register_model", "teardown_cluster"),
        ("provision_cluster", "teardown_cluster"),
    }


def test_the_teardown_is_one_and_does_not_decide_the_dag_run(bag: DagBag) -> None:
    """K55."""
    for dag_id in ("digits", "hand_written_example"):
        teardown = bag.dags[dag_id].get_task("teardown_cluster")
        assert teardown.is_teardown
        assert not teardown.on_failure_fail_dagrun
        assert bag.dags[dag_id].get_task("provision_cluster").is_setup


def test_the_dag_says_what_it_is(bag: DagBag) -> None:
    dag = bag.dags["digits"]
    assert dag.tags == {"ganger", "tensorflow", "multi_worker_mirrored"}
    assert dag.description
    text = (REPOSITORY / "dags/pipelines/digits.yaml").read_text()
    assert text.rstrip() in dag.doc_md
    assert {task.owner for task in dag.tasks} == {"ganger"}


@pytest.mark.parametrize("dag_id", ["digits", "hand_written_example"])
def test_dags_survive_serialisation(bag: DagBag, dag_id: str) -> None:
    dag = bag.dags[dag_id]
    restored = DagSerialization.from_dict(DagSerialization.to_dict(dag))
    assert edges(restored) == edges(dag)
    assert restored.params.dump() == dag.params.dump()
    for task in restored.tasks:
        original = dag.get_task(task.task_id)
        assert (task.is_setup, task.is_teardown, task.retries) == (
            original.is_setup,
            original.is_teardown,
            original.retries,
        )
        assert set(task.operator_extra_link_dict) == {link.name for link in original.operator_extra_links}


def test_an_approval_waits_before_registering_and_holds_no_cluster() -> None:
    dag = build_dag(make(register={"model": "m", "approval": True}))
    assert set(dag.task_ids) == {*TASKS, "approve"}
    assert {pair for pair in edges(dag) if "approve" in pair} == {
        ("evaluate", "approve"),
        ("teardown_cluster", "approve"),
        ("approve", "register_model"),
    }
    assert ("register_model", "teardown_cluster") not in edges(dag)


@pytest.mark.parametrize(
    ("train", "operator"),
    [
        ({"engine": "tensorflow"}, TensorFlowTrainingOperator),
        ({"engine": "horovod"}, HorovodTrainingOperator),
        ({"engine": "mxnet"}, MXNetTrainingOperator),
    ],
)
def test_the_engine_chooses_the_operator(train: dict[str, str], operator: type) -> None:
    assert type(build_dag(make(train=train)).get_task("train")) is operator


@pytest.mark.parametrize(
    ("schedule", "summary"),
    [(None, "None"), ("0 2 * * *", "0 2 * * *"), ("@daily", "0 0 * * *"), ("@continuous", "@continuous")],
)
def test_schedules(schedule: str | None, summary: str) -> None:
    dag = DagSerialization.from_dict(DagSerialization.to_dict(build_dag(make(schedule=schedule))))
    assert dag.timetable.summary == summary
    assert dag.catchup is False


def test_a_schedule_of_assets() -> None:
    dag = build_dag(make(schedule={"assets": ["s3://bucket/a", "file:///b"]}))
    assert {asset.uri for asset in dag.timetable.asset_condition.objects} == {"s3://bucket/a", "file:///b"}


def test_a_spec_for_another_engine_is_refused(bag: DagBag) -> None:
    with pytest.raises(SpecError, match=r"MXNetTrainingOperator needs engine mxnet. Received: tensorflow") as caught:
        MXNetTrainingOperator(task_id="train", pipeline=make())
    assert caught.value.problems[0].remedy == "Use TensorFlowTrainingOperator."


def test_an_operator_takes_a_path_a_mapping_or_a_loaded_pipeline(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(SPEC.format(name="p"))
    file = load_pipeline(path)
    operators = [
        TensorFlowTrainingOperator(task_id="train", pipeline=source)
        for source in (path, str(path), file, file.spec.model_dump(by_alias=True))
    ]
    assert len({operator.pipeline.spec.model_dump_json() for operator in operators}) == 1


def test_a_relative_path_counts_from_the_file_of_the_dag(tmp_path: Path) -> None:
    from airflow.sdk import DAG

    (tmp_path / "p.yaml").write_text(SPEC.format(name="p"))
    dag = DAG("by_hand", schedule=None)
    dag.fileloc = str(tmp_path / "dag.py")
    assert TensorFlowTrainingOperator(task_id="train", pipeline="p.yaml", dag=dag).pipeline.spec.name == "p"


def test_the_stages_of_a_pipeline_are_tasks_in_their_order_before_the_training(bag: DagBag) -> None:
    dag = bag.dags["digits_pipeline"]
    assert set(dag.task_ids) == {*TASKS, "pipeline.stage_0", "pipeline.stage_1"}
    assert edges(dag) >= {
        ("prepare_data", "pipeline.stage_0"),
        ("provision_cluster", "pipeline.stage_0"),
        ("pipeline.stage_0", "pipeline.stage_1"),
        ("pipeline.stage_1", "train"),
    }
    assert not {("prepare_data", "train"), ("provision_cluster", "train")} & edges(dag)
    check_stage_tasks(dag, dag.get_task("train").pipeline.spec)


STAGES = make(train={"engine": "tensorflow", "strategy": "pipeline", "pipeline": {"stages": 3}})


@pytest.mark.parametrize(
    ("numbers", "order", "sentence"),
    [
        ([0, 2], [(0, 2)], "from 0 to 2, one each. Received: tasks for stage 0, stage 2."),
        ([0, 1, 2], [(0, 2), (2, 1)], "s2 must come after s1. Received: an order without that. Write s1 >> s2."),
        ([0, 1, 2], [(0, 1), (1, 2)], "train must come after s2."),
    ],
    ids=["gap", "order", "training"],
)
def test_stages_by_hand_must_be_whole_and_in_order(
    numbers: list[int], order: list[tuple[int, int]], sentence: str
) -> None:
    """K31."""
    from airflow.sdk import DAG

    dag = DAG("by_hand", schedule=None)
    common = {"pipeline": STAGES, "dag": dag}
    tasks = {number: PipelineStageOperator(task_id=f"s{number}", stage=number, **common) for number in numbers}
    for before, after in order:
        tasks[before] >> tasks[after]
    train = TensorFlowTrainingOperator(task_id="train", **common)
    if len(order) < 2 or order[-1] != (1, 2):
        tasks[2] >> train
    with pytest.raises(SpecError) as caught:
        check_stage_tasks(dag, STAGES.spec)
    assert sentence in str(caught.value)


def test_a_stage_that_a_pipeline_lacks_is_refused() -> None:
    """K31."""
    with pytest.raises(SpecError, match=r"so a stage must be one of 0 to 2. Received: stage 3"):
        PipelineStageOperator(task_id="s3", pipeline=STAGES, stage=3)
    with pytest.raises(SpecError, match=r"must be pipeline for a PipelineStageOperator. Received: single"):
        PipelineStageOperator(task_id="s0", pipeline=make(), stage=0)
