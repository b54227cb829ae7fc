"""DAG runs through Airflow's own runner and a real metadata database, with steps that only say how they end."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.models.dagrun import DagRun
from airflow.sdk import DAG
from fake_training import FakeTraining
from specs import SPEC

from training import steps
from training.errors import InfrastructureError, LaunchError, WorkerError
from training.settings import REPOSITORY
from training.steps import StepContext

pytestmark = [pytest.mark.airflow, pytest.mark.usefixtures("database", "signals")]

STEPS = ("prepare_data", "provision_cluster", "train", "evaluate", "register_model", "teardown_cluster")
STORY = 'rank 1 (worker) on 127.0.0.1 failed\nTraceback (most recent call last):\n  File "x.py"\nValueError: boom'

Answers = dict[str, Callable[[StepContext], dict[str, Any]]]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Replaces all steps; the names of those that were called, in order."""
    names: list[str] = []
    for name in STEPS:
        monkeypatch.setattr(steps, name, lambda ctx, name=name: names.append(name) or {"step": name})
    FakeTraining(lambda ctx: names.append("train") or {"step": "train"}).install(monkeypatch)
    monkeypatch.setattr(steps, "release_cluster", lambda run: names.append("release_cluster"))
    return names


@pytest.fixture
def answer(calls: list[str], monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Any], None]:
    """Have one step do something else."""

    def set_answer(step: str, act: Callable[[StepContext], dict[str, Any]]) -> None:
        def fake(ctx: StepContext) -> dict[str, Any]:
            calls.append(step)
            return act(ctx)

        if step == "train":
            FakeTraining(fake).install(monkeypatch)
        else:
            monkeypatch.setattr(steps, step, fake)

    return set_answer


@pytest.fixture
def dag(folder: Path) -> DAG:
    (folder / "p.yaml").write_text(SPEC.format(name="p"))
    dag: DAG = DagBag(REPOSITORY / "dags").dags["p"]
    for task in dag.tasks:
        task.retry_delay = timedelta(0)
    return dag


def states(run: DagRun) -> dict[str, str | None]:
    return {ti.task_id: ti.state for ti in run.get_task_instances()}


def fail(error: Exception) -> Callable[[StepContext], dict[str, Any]]:
    def act(ctx: StepContext) -> dict[str, Any]:
        raise error

    return act


def test_all_steps_run_in_order_and_hand_on_small_json(dag: DAG, calls: list[str]) -> None:
    run = dag.test()
    assert run.state == "success"
    assert set(calls[:2]) == {"prepare_data", "provision_cluster"}
    assert calls[2:] == ["train", "evaluate", "register_model", "teardown_cluster"]
    assert run.get_task_instance("train").xcom_pull(task_ids="train") == {"step": "train"}


def test_parameters_reach_the_step(dag: DAG, answer: Callable[..., None]) -> None:
    seen: list[StepContext] = []
    answer("train", lambda ctx: seen.append(ctx) or {})
    run = dag.test(run_conf={"epochs": 9, "train.stop_grace_s": 5})
    assert run.state == "success"
    assert (seen[0].spec.train.epochs, seen[0].spec.train.stop_grace_s) == (9, 5)
    assert seen[0].tags == {"dag_id": "p", "dag_run_id": run.run_id, "try_number": "1"}


def test_a_training_that_fails_fails_the_dag_run_and_is_torn_down(
    dag: DAG, calls: list[str], answer: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    """K55, and the log ends with the traceback of the rank that failed."""
    answer("train", fail(WorkerError(STORY)))
    run = dag.test()
    assert run.state == "failed"
    assert calls.count("train") == 1
    assert calls[-1] == "teardown_cluster"
    assert states(run)["evaluate"] == states(run)["register_model"] == "upstream_failed"
    printed = capsys.readouterr().out
    end = printed[printed.rindex("Task failed with exception") :]
    headline = end.rindex("WorkerError: rank 1 (worker) on 127.0.0.1 failed")
    assert STORY in end[headline:]
    assert "/ganger/operators" not in end[headline:]


def test_a_failure_that_may_heal_is_retried(dag: DAG, calls: list[str], answer: Callable[..., None]) -> None:
    errors = [InfrastructureError("the node went away")]

    def act(ctx: StepContext) -> dict[str, Any]:
        if errors:
            raise errors.pop()
        return {}

    answer("train", act)
    assert dag.test().state == "success"
    assert calls.count("train") == 2


def test_a_provisioning_that_fails_gives_back_and_fails_the_dag_run(
    dag: DAG, calls: list[str], answer: Callable[..., None]
) -> None:
    """K55: half-way, so that Airflow skips the teardown."""
    answer("provision_cluster", fail(LaunchError("only one of two hosts")))
    run = dag.test()
    assert run.state == "failed"
    assert calls.count("release_cluster") == calls.count("provision_cluster") == 2
    assert "train" not in calls


def test_a_teardown_that_fails_is_red_but_does_not_make_the_training_a_failure(
    dag: DAG, answer: Callable[..., None]
) -> None:
    """K55."""
    answer("teardown_cluster", fail(WorkerError("a process would not end")))
    run = dag.test()
    assert run.state == "success"
    assert states(run)["teardown_cluster"] == "failed"


def test_a_failing_teardown_does_not_hide_a_failed_training(dag: DAG, answer: Callable[..., None]) -> None:
    """K55."""
    answer("train", fail(WorkerError(STORY)))
    answer("teardown_cluster", fail(WorkerError("a process would not end")))
    assert dag.test().state == "failed"


def test_a_timeout_ends_the_step(
    dag: DAG, answer: Callable[..., None], calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """K17."""
    ended = threading.Event()
    monkeypatch.setattr(steps, "cancel_step", lambda ctx, step, reason: calls.append(f"cancel {step}"))
    answer("train", lambda ctx: {"ended": ended.wait(60)})
    train = dag.get_task("train")
    train.execution_timeout, train.retries = timedelta(seconds=1), 0
    run = dag.test()
    assert run.state == "failed"
    assert "cancel train" in calls
    assert calls[-1] == "teardown_cluster"


def test_unknown_parameters_fail_before_anything_starts(
    dag: DAG, calls: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """K53."""
    run = dag.test(run_conf={"epoch": 9})
    assert run.state == "failed"
    assert calls == []
    assert "Did you mean epochs?" in capsys.readouterr().out
