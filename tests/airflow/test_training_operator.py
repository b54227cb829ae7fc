"""The training operators as resumable jobs: what a try does with what an earlier one left."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fake_training import FakeTraining
from specs import SPEC

from ganger.errors import StepFailed, StepInterrupted
from ganger.operators import TensorFlowTrainingOperator
from ganger.operators.training import JOB_KEY, forget_job
from training.errors import InfrastructureError, LaunchError, WorkerError
from training.run.folder import run_id_of
from training.run.standing import Standing
from training.steps import StepContext

RUN = "manual__2026-12-02T01:50:44+00:00"
JOB = f"{run_id_of('p', RUN)}/train"


class Store(dict[str, Any]):
    """Airflow's task state store, as its accessor is."""

    def set(self, key: str, value: Any) -> None:
        self[key] = value

    def delete(self, key: str) -> None:
        self.pop(key, None)


class Task:
    """One task instance, from try to try."""

    def __init__(self, path: Path, store: Store | None) -> None:
        self.path = path
        self.store = store
        self.tries = 0

    def run(self, **arguments: Any) -> dict[str, Any]:
        """One try that Airflow sees succeed or fail."""
        values = self.execute(**arguments)
        forget_job(self.context)
        return values

    def execute(self, **arguments: Any) -> dict[str, Any]:
        """One try whose process dies before Airflow has written down the success."""
        self.tries += 1
        operator = TensorFlowTrainingOperator(task_id="t", pipeline=self.path, **arguments)
        values: dict[str, Any] = type(operator).execute.__wrapped__(operator, self.context)  # type: ignore[attr-defined]
        return values

    @property
    def context(self) -> dict[str, Any]:
        ti = SimpleNamespace(dag_id="p", run_id=RUN, try_number=self.tries, map_index=-1, stats_tags={})
        context = {"ti": ti, "dag_run": SimpleNamespace(run_id=RUN), "params": {}}
        return context | ({"task_state_store": self.store} if self.store is not None else {})


@pytest.fixture
def training(monkeypatch: pytest.MonkeyPatch) -> FakeTraining:
    return FakeTraining(lambda ctx: {"steps": 3}).install(monkeypatch)


@pytest.fixture
def make_task(tmp_path: Path) -> Callable[..., Task]:
    path = tmp_path / "p.yaml"
    path.write_text(SPEC.format(name="p"))
    return lambda store=None: Task(path, store)


def fail(error: Exception) -> Callable[[StepContext], dict[str, Any]]:
    def act(ctx: StepContext) -> dict[str, Any]:
        raise error

    return act


def test_the_first_try_starts_the_gang_and_follows_it_from_there(
    training: FakeTraining, make_task: Callable[..., Task]
) -> None:
    store = Store()
    assert make_task(store).run() == {"steps": 3}
    assert training.calls == ["start", "follow from 7"]
    assert store == {}


def test_the_job_is_stored_before_it_is_started(
    training: FakeTraining, make_task: Callable[..., Task], monkeypatch: pytest.MonkeyPatch
) -> None:
    """K51: a process that dies while the gang starts leaves its name."""
    store = Store()
    monkeypatch.setattr("training.steps.start_training", fail(LaunchError("no")))
    with pytest.raises(StepInterrupted):
        make_task(store).run()
    assert store == {JOB_KEY: JOB}


def test_a_try_that_finds_the_gang_joins_it_and_has_its_result(
    training: FakeTraining, make_task: Callable[..., Task]
) -> None:
    """K51."""
    training.standing = Standing.ACTIVE
    assert make_task(Store({JOB_KEY: JOB})).run() == {"steps": 3}
    assert training.calls == ["join", "follow from 0"]


def test_a_try_that_finds_the_result_takes_it(training: FakeTraining, make_task: Callable[..., Task]) -> None:
    """The process died between the end of the job and its own."""
    task = make_task(Store())
    assert task.execute() == task.run() == {"steps": 3}
    assert training.calls == ["start", "follow from 7"]


def test_a_cleared_success_trains_anew(training: FakeTraining, make_task: Callable[..., Task]) -> None:
    task = make_task(Store())
    task.run()
    training.act = lambda ctx: {"steps": 4}
    assert task.run() == {"steps": 4}
    assert training.calls == ["start", "follow from 7", "set aside", "start", "follow from 7"]


@pytest.mark.parametrize("standing", [Standing.ABSENT, Standing.LOST, Standing.ENDING, Standing.CANCELLED])
def test_what_neither_runs_nor_has_succeeded_is_started_and_nothing_is_set_aside(
    standing: Standing, training: FakeTraining, make_task: Callable[..., Task]
) -> None:
    training.standing = standing
    assert make_task(Store({JOB_KEY: JOB})).run() == {"steps": 3}
    assert training.calls == ["start", "follow from 7"]


@pytest.mark.parametrize(
    ("error", "raised"), [(WorkerError("x"), StepFailed), (InfrastructureError("x"), StepInterrupted)]
)
def test_a_failure_keeps_the_job_so_that_a_retry_or_a_clear_resumes(
    error: Exception, raised: type[Exception], training: FakeTraining, make_task: Callable[..., Task]
) -> None:
    store = Store()
    task = make_task(store)
    training.act = fail(error)
    with pytest.raises(raised):
        task.run()
    assert store == {JOB_KEY: JOB}
    training.act = lambda ctx: {"steps": 3}
    assert task.run() == {"steps": 3}
    assert "set aside" not in training.calls


@pytest.mark.parametrize("arguments", [{}, {"durable": False}])
def test_without_a_store_the_run_folder_alone_decides(
    arguments: dict[str, Any], training: FakeTraining, make_task: Callable[..., Task]
) -> None:
    task = make_task(Store() if arguments else None)
    training.standing = Standing.SUCCEEDED
    assert task.run(**arguments) == {"steps": 3}
    assert "set aside" not in training.calls


def test_the_step_knows_which_try_it_is(training: FakeTraining, make_task: Callable[..., Task]) -> None:
    seen: list[int] = []
    training.act = lambda ctx: seen.append(ctx.try_number) or {}
    task = make_task(Store())
    task.run()
    task.run()
    assert seen == [1, 2]


def test_a_success_callback_of_the_user_is_kept(tmp_path: Path) -> None:
    def mine(context: object) -> None: ...

    (tmp_path / "p.yaml").write_text(SPEC.format(name="p"))
    operator = TensorFlowTrainingOperator(task_id="t", pipeline=tmp_path / "p.yaml", on_success_callback=mine)
    assert operator.on_success_callback == [mine, forget_job]
