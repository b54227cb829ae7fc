from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import DAG, ExceptionRetryPolicy, RetryAction, RetryRule
from airflow.sdk.exceptions import AirflowException
from specs import SPEC
from structlog.testing import capture_logs

from ganger.errors import StepFailed, StepInterrupted, report_failure
from ganger.operators import (
    EvaluateModelOperator,
    PrepareDataOperator,
    ProvisionClusterOperator,
    RegisterModelOperator,
    StepOperator,
    TeardownClusterOperator,
    TensorFlowTrainingOperator,
)
from training import steps
from training.errors import (
    CancelledError,
    GangerError,
    InfrastructureError,
    LaunchError,
    PreflightError,
    TrackingError,
    WorkerError,
    spec_error,
)
from training.run.folder import run_id_of
from training.settings import REPOSITORY
from training.steps import StepContext

RUN = "manual__2026-12-02T01:50:44+00:00"
STORY = 'rank 1 (worker) on 127.0.0.1 failed\nTraceback (most recent call last):\n  File "x.py"\nValueError: boom'

OPERATORS = {
    "prepare_data": PrepareDataOperator,
    "provision_cluster": ProvisionClusterOperator,
    "train": TensorFlowTrainingOperator,
    "evaluate": EvaluateModelOperator,
    "register_model": RegisterModelOperator,
    "teardown_cluster": TeardownClusterOperator,
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "p.yaml"
    path.write_text(SPEC.format(name="p"))
    return path


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[StepContext]]:
    """Have a step answer with a value or an error; returns what it was called with."""

    def set_answer(step: str, value: Any) -> list[StepContext]:
        calls: list[StepContext] = []

        def fake(ctx: StepContext) -> dict[str, Any]:
            calls.append(ctx)
            if isinstance(value, BaseException):
                raise value
            result: dict[str, Any] = value(ctx) if callable(value) else value
            return result

        monkeypatch.setattr(steps, step, fake)
        return calls

    return set_answer


@pytest.fixture
def cancelled(monkeypatch: pytest.MonkeyPatch) -> list[tuple[StepContext, str, str]]:
    calls: list[tuple[StepContext, str, str]] = []
    monkeypatch.setattr(steps, "cancel_step", lambda *arguments: calls.append(arguments))
    return calls


@pytest.fixture
def released(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    calls: list[object] = []
    monkeypatch.setattr(steps, "release_cluster", calls.append)
    return calls


def execute(operator: StepOperator, params: dict[str, Any] | None = None) -> Any:
    """Call `execute` as Airflow's task runner does, past its guard against calls from elsewhere."""
    ti = SimpleNamespace(dag_id="p", run_id=RUN, try_number=2, map_index=-1)
    context = {"ti": ti, "dag_run": SimpleNamespace(run_id=RUN), "params": params or {}}
    return type(operator).execute.__wrapped__(operator, context)  # type: ignore[attr-defined]


@pytest.mark.parametrize("step", OPERATORS)
def test_each_operator_calls_its_step_with_the_run_of_the_dag_run(
    step: str, path: Path, answer: Callable[..., list[StepContext]], home: Path
) -> None:
    calls = answer(step, {"rows": 3})
    assert execute(OPERATORS[step](task_id="t", pipeline=path)) == {"rows": 3}
    (ctx,) = calls
    assert ctx.run.path == home / "runs" / run_id_of("p", RUN)
    assert ctx.tags == {"dag_id": "p", "dag_run_id": RUN, "try_number": "2"}
    assert ctx.map_index == -1
    assert ctx.file.path == path


def test_parameters_of_the_dag_run_change_the_spec(path: Path, answer: Callable[..., list[StepContext]]) -> None:
    calls = answer("train", {})
    execute(TensorFlowTrainingOperator(task_id="t", pipeline=path), {"epochs": 9, "region": "north"})
    assert calls[0].spec.train.epochs == 9


def test_unknown_parameters_are_refused_where_the_form_is_ours(path: Path) -> None:
    """K53."""
    operator = TensorFlowTrainingOperator(task_id="t", pipeline=path, refuse_unknown_params=True)
    with pytest.raises(StepFailed, match=r"params.epoch: .*Did you mean epochs\?"):
        execute(operator, {"epoch": 9})


@pytest.mark.parametrize("error", [LaunchError(STORY), InfrastructureError(STORY), TrackingError(STORY)])
def test_what_a_retry_may_heal_is_retried(
    error: GangerError, path: Path, answer: Callable[..., list[StepContext]]
) -> None:
    answer("train", error)
    operator = TensorFlowTrainingOperator(task_id="t", pipeline=path)
    with pytest.raises(StepInterrupted) as caught:
        execute(operator)
    decision = operator.retry_policy.evaluate(caught.value, 1, 1)
    assert (decision.action, decision.reason) == (RetryAction.RETRY, "the next try may not meet this failure")


@pytest.mark.parametrize(
    "error", [WorkerError(STORY), PreflightError(STORY), CancelledError(STORY), spec_error("train.epochs", STORY)]
)
def test_what_no_retry_can_heal_fails_for_good(
    error: GangerError, path: Path, answer: Callable[..., list[StepContext]]
) -> None:
    """K17."""
    answer("train", error)
    operator = TensorFlowTrainingOperator(task_id="t", pipeline=path)
    with pytest.raises(StepFailed) as caught:
        execute(operator)
    decision = operator.retry_policy.evaluate(caught.value, 1, 5)
    assert (decision.action, decision.reason) == (RetryAction.FAIL, "another try would fail in the same way")


def test_failures_that_are_not_ours_are_left_to_the_number_of_retries(path: Path) -> None:
    operator = TensorFlowTrainingOperator(task_id="t", pipeline=path)
    assert operator.retry_policy.evaluate(ValueError("x"), 1, 1).action is RetryAction.DEFAULT


@pytest.mark.parametrize("policy", [None, ExceptionRetryPolicy(rules=[RetryRule(ValueError)])])
def test_another_retry_policy_can_be_given(policy: ExceptionRetryPolicy | None, path: Path) -> None:
    assert TensorFlowTrainingOperator(task_id="t", pipeline=path, retry_policy=policy).retry_policy is policy
    with DAG("p", schedule=None, default_args={"retry_policy": policy}):
        assert TensorFlowTrainingOperator(task_id="t", pipeline=path).retry_policy is policy


def test_the_error_is_one_line_and_brings_no_frames_of_ours(
    path: Path, answer: Callable[..., list[StepContext]]
) -> None:
    answer("train", WorkerError(STORY))
    with pytest.raises(StepFailed) as caught:
        execute(TensorFlowTrainingOperator(task_id="t", pipeline=path))
    assert str(caught.value) == "WorkerError: rank 1 (worker) on 127.0.0.1 failed"
    assert caught.value.__suppress_context__
    assert [entry.name for entry in caught.traceback if "/ganger/" in str(entry.path)] == ["execute"]


def test_the_last_word_is_that_of_the_failing_rank(path: Path, answer: Callable[..., list[StepContext]]) -> None:
    answer("train", WorkerError(STORY))
    operator = TensorFlowTrainingOperator(task_id="t", pipeline=path)
    with pytest.raises(StepFailed) as caught:
        execute(operator)
    for callbacks in (operator.on_failure_callback, operator.on_retry_callback):
        with capture_logs() as logs:
            callbacks[-1]({"exception": caught.value})
        assert [(entry["log_level"], entry["event"]) for entry in logs] == [("error", f"WorkerError: {STORY}")]


def test_a_failure_that_is_not_ours_is_left_to_airflow() -> None:
    with capture_logs() as logs:
        report_failure({"exception": ValueError("x")})
        report_failure({})
    assert logs == []


def test_callbacks_of_the_user_are_kept(path: Path) -> None:
    def mine(context: object) -> None: ...

    operator = TensorFlowTrainingOperator(
        task_id="t", pipeline=path, on_failure_callback=mine, on_retry_callback=[mine]
    )
    assert operator.on_failure_callback == [mine, report_failure]
    assert operator.on_retry_callback == [mine, report_failure]


def test_an_error_that_is_not_of_ganger_keeps_its_traceback(
    path: Path, answer: Callable[..., list[StepContext]]
) -> None:
    answer("train", ZeroDivisionError("a mistake of ours"))
    with pytest.raises(ZeroDivisionError):
        execute(TensorFlowTrainingOperator(task_id="t", pipeline=path))


def test_large_results_go_to_the_run_folder(path: Path, answer: Callable[..., list[StepContext]], home: Path) -> None:
    """K52."""
    answer("train", {"history": [0.5] * 100_000, "steps": 3})
    values = execute(TensorFlowTrainingOperator(task_id="train", pipeline=path))
    assert values["steps"] == 3
    assert Path(values["history"]["file"]).is_relative_to(home / "runs" / run_id_of("p", RUN))


def test_results_that_are_no_json_fail_by_key_and_type(path: Path, answer: Callable[..., list[StepContext]]) -> None:
    """K52."""
    answer("train", {"model": Path("x")})
    with pytest.raises(StepFailed, match=r"result model must be plain JSON.*PosixPath"):
        execute(TensorFlowTrainingOperator(task_id="train", pipeline=path))


@pytest.mark.parametrize("step", OPERATORS)
def test_a_killed_task_ends_its_step(
    step: str,
    path: Path,
    answer: Callable[..., list[StepContext]],
    cancelled: list[tuple[StepContext, str, str]],
) -> None:
    """K16: Airflow calls `on_kill` from its signal handler while `execute` runs."""
    operator = OPERATORS[step](task_id="t", pipeline=path)
    calls = answer(step, lambda ctx: operator.on_kill() or {})
    execute(operator)
    assert cancelled == [(calls[0], step, "the Airflow task t was ended")]


def test_a_task_that_is_killed_before_it_began_has_nothing_to_end(
    path: Path, cancelled: list[tuple[StepContext, str, str]]
) -> None:
    TensorFlowTrainingOperator(task_id="t", pipeline=path).on_kill()
    assert cancelled == []


@pytest.mark.parametrize("error", [LaunchError("full"), KeyboardInterrupt()])
def test_a_provisioning_that_fails_half_way_gives_back_what_it_took(
    error: BaseException, path: Path, answer: Callable[..., list[StepContext]], released: list[object]
) -> None:
    """K55: Airflow skips the teardown of a setup that failed."""
    calls = answer("provision_cluster", error)
    with pytest.raises((AirflowException, KeyboardInterrupt)):
        execute(ProvisionClusterOperator(task_id="t", pipeline=path))
    assert released == [calls[0].run]


def test_a_provisioning_that_works_keeps_its_cluster(
    path: Path, answer: Callable[..., list[StepContext]], released: list[object]
) -> None:
    answer("provision_cluster", {"backend": "local"})
    execute(ProvisionClusterOperator(task_id="t", pipeline=path))
    assert released == []


def test_a_mapping_counts_paths_from_the_working_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)
    spec = {"name": "p", "data": {"source": "digits"}, "model": {"entrypoint": "m"}, "train": {"engine": "tensorflow"}}
    assert TensorFlowTrainingOperator(task_id="t", pipeline=spec).pipeline.base_dir == REPOSITORY
