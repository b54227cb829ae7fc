"""Makes the DAG of one pipeline. Reading files and standing in for broken ones is done in `ganger.collection`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import DAG, BaseOperator, TaskGroup
from airflow.sdk.definitions.param import ParamsDict
from airflow.sdk.exceptions import AirflowTimetableInvalid

from ganger.doc import render_doc
from ganger.form import make_params
from ganger.operators import (
    EvaluateModelOperator,
    PipelineStageOperator,
    PrepareDataOperator,
    ProvisionClusterOperator,
    RegisterModelOperator,
    TeardownClusterOperator,
)
from ganger.operators.training import TRAINING_OPERATORS
from ganger.schedule import make_schedule
from training.errors import spec_error
from training.spec.file import PipelineFile
from training.spec.pipeline import PipelineSpec

OWNER = "ganger"
#: Runs are isolated from each other (folders, ports), but each one holds a gang.
MAX_ACTIVE_RUNS = 4
#: Fixed, so that every parse gives the same DAG; no run is caught up from here.
_START = datetime(2025, 1, 1, tzinfo=UTC)
#: Only what a retry can heal is retried: see `ganger.errors`. A supervised gang that still runs is followed again.
_DEFAULT_ARGS = {"owner": OWNER, "retries": 1, "retry_delay": timedelta(seconds=10)}


def build_dag(file: PipelineFile) -> DAG:
    """Return the DAG of a pipeline.

    Raises:
        SpecError: Airflow cannot take what the spec says, such as its schedule.
    """
    spec = file.spec
    dag = DAG(
        dag_id=spec.name,
        description=spec.description or None,
        schedule=make_schedule(spec),
        start_date=_START,
        catchup=False,
        max_active_runs=1 if spec.schedule == "@continuous" else MAX_ACTIVE_RUNS,
        default_args=_DEFAULT_ARGS,
        tags=[OWNER, spec.train.engine, spec.train.strategy],
        doc_md=render_doc(file, _read_text(file)),
        auto_register=False,
    )
    _add_tasks(dag, file)
    # Given last: else every task gets a deep copy, which takes half of the parse time and of the stored DAG. A task
    # sees the parameters of its DAG anyway (`airflow.sdk.definitions.param.process_params`).
    dag.params = ParamsDict(make_params(spec))
    _check_schedule(dag, spec)
    return dag


def _add_tasks(dag: DAG, file: PipelineFile) -> None:
    common: dict[str, Any] = {"dag": dag, "pipeline": file, "refuse_unknown_params": True}
    prepare = PrepareDataOperator(task_id="prepare_data", **common)
    provision = ProvisionClusterOperator(task_id="provision_cluster", **common)
    train = TRAINING_OPERATORS[file.spec.train.engine](task_id="train", **common)
    evaluate = EvaluateModelOperator(task_id="evaluate", **common)
    register = RegisterModelOperator(task_id="register_model", **common)
    # Not `on_failure_fail_dagrun`: that makes the teardown the only leaf, and a DAG run whose training failed would be
    # a success (DagRun._tis_for_dagrun_state).
    teardown = TeardownClusterOperator(task_id="teardown_cluster", **common).as_teardown(setups=provision)
    _put_between([prepare, provision], _add_stages(file, common), train)
    train >> evaluate
    registration = file.spec.registration
    if registration is None or not registration.approval:
        evaluate >> register >> teardown
    else:
        # A person may take days: the cluster is given back before they are asked.
        approve = _make_approval(dag, file.spec)
        evaluate >> teardown >> approve
        evaluate >> approve >> register


def _add_stages(file: PipelineFile, common: dict[str, Any]) -> list[BaseOperator]:
    """Return the tasks that bring up the stages of a pipeline, in their order; none under another strategy."""
    if file.spec.train.strategy != "pipeline":
        return []
    with TaskGroup("pipeline", dag=common["dag"], tooltip="Stages, which compute together in the task train"):
        return [
            PipelineStageOperator(task_id=f"stage_{stage}", stage=stage, **common) for stage in range(file.spec.workers)
        ]


def _put_between(first: list[BaseOperator], stages: list[BaseOperator], train: BaseOperator) -> None:
    before: list[BaseOperator] = first
    for task in [*stages, train]:
        before >> task
        before = [task]


def _make_approval(dag: DAG, spec: PipelineSpec) -> BaseOperator:
    # Imported where it is needed: half of the pipelines' parse time otherwise.
    from airflow.providers.standard.operators.hitl import ApprovalOperator

    target = spec.registration
    assert target is not None
    name = f"{target.model} as @{target.alias}" if target.alias else target.model
    return ApprovalOperator(
        task_id="approve",
        dag=dag,
        subject=f"Register {name}?",
        body="Metrics on the held-out rows: {{ ti.xcom_pull(task_ids='evaluate')['metrics'] }}",
    )


def _check_schedule(dag: DAG, spec: PipelineSpec) -> None:
    try:
        dag.timetable.validate()
    except AirflowTimetableInvalid as error:
        raise spec_error(
            "schedule",
            f"must be a cron expression of five fields or a preset. Received: {spec.schedule!r} ({error}).",
        ) from None


def _read_text(file: PipelineFile) -> str:
    if file.path is not None:
        return file.path.read_text(encoding="utf-8")
    return file.spec.model_dump_json(indent=2, by_alias=True, exclude_unset=True)
