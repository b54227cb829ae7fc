import io

import pytest
from rich.console import Console

from tools.airflow_api import TaskState, parse_task
from tools.demo import WORKERS, describe_changes, make_room
from tools.demo_summary import DemoSummary, format_seconds, read_outcome, render_summary
from training import settings
from training.run.folder import RunFolder
from training.run.job import JobResult, JobState, TrackingRef
from training.spec.loader import load_pipeline

DIGITS = settings.REPOSITORY / "dags" / "pipelines" / "digits.yaml"
SUMMARY = DemoSummary(
    dag_id="digits",
    dag_run_id="manual__1",
    state="success",
    run_id="digits-1",
    tasks=[TaskState(task_id="train", state="success", duration_s=21.26)],
    workers=2,
    steps=176,
    accuracy=0.93314,
    rows=359,
    mlflow_run_id="abc",
    mlflow_status="FINISHED",
    model="digits",
    version="3",
    alias="champion",
    seconds=83.4,
    urls={"Airflow": "http://127.0.0.1:8080", "MLflow": "http://127.0.0.1:5000"},
)


def render(summary, width=100):
    console = Console(file=io.StringIO(), width=width)
    console.print(render_summary(summary))
    return console.file.getvalue()


@pytest.mark.parametrize(
    "shown",
    [
        "│ train │ success │   21.3 s │",
        "DAG run state     success",
        "workers           2",
        "steps             176",
        "0.9331 on 359 held-out rows",
        "abc (FINISHED)",
        "digits version 3 (digits@champion)",
        "http://127.0.0.1:8080",
        "http://127.0.0.1:5000",
        "83 s",
    ],
)
def test_the_table_shows_what_was_trained_and_where_to_look(shown):
    assert shown in render(SUMMARY)


def test_what_is_not_known_is_a_dash_and_never_a_made_up_number():
    text = render(DemoSummary(dag_id="digits", dag_run_id="manual__1", state="failed", run_id="digits-1"))

    assert "accuracy          -" in text
    assert "registered model  -" in text
    assert "MLflow run        -" in text


def test_each_task_is_said_once_when_it_begins_and_once_when_it_ends():
    said = {}
    waiting = TaskState(task_id="train", state="queued")
    running = TaskState(task_id="train", state="running")
    done = TaskState(task_id="train", state="success", duration_s=2.0)

    seen = [describe_changes([task], said) for task in (waiting, running, running, done, done)]

    assert [[line.split() for line in lines] for lines in seen] == [
        [],
        [["train", "running"]],
        [],
        [["train", "success", "2.0", "s"]],
        [],
    ]


def test_a_retry_is_said_too():
    said = {"train": "running"}
    states = [TaskState(task_id="train", state=state) for state in ("up_for_retry", "running")]

    assert [bool(describe_changes([task], said)) for task in states] == [True, True]


def test_the_duration_of_a_task_that_never_ran_is_unknown():
    entry = {"task_id": "evaluate", "state": "upstream_failed", "try_number": 0, "duration": 0.0}
    entry |= {"start_date": None, "end_date": "2026-12-02T02:22:53Z"}

    assert parse_task(entry).duration_s is None
    assert parse_task(entry).try_number == 1


def test_a_task_that_runs_has_no_duration_yet():
    entry = {"task_id": "train", "state": "running", "try_number": 1, "duration": 3.0}
    entry |= {"start_date": "2026-12-02T02:22:53Z", "end_date": None}

    assert parse_task(entry).duration_s is None


def test_the_outcome_is_read_from_the_folder_of_the_run(tmp_path):
    run = RunFolder(tmp_path / "runs" / "digits-1")

    def write(job, **fields):
        ended = JobResult(state=JobState.SUCCEEDED, started_at=1.0, ended_at=2.0, **fields)
        ended.write(run.job(job).result)

    write("train", exit_codes={0: 0, 1: 0}, values={"steps": 176, "metrics": {"loss": 0.1}})
    write("evaluate", values={"metrics": {"accuracy": 0.93}, "rows": 359})
    write("register_model", values={"model": "digits", "version": 3, "alias": "champion"})
    TrackingRef(tracking_uri="http://m", experiment_id="1", run_id="abc").write(run.tracking)

    assert read_outcome(run) == {
        "workers": 2,
        "steps": 176,
        "accuracy": 0.93,
        "rows": 359,
        "mlflow_run_id": "abc",
        "model": "digits",
        "version": "3",
        "alias": "champion",
    }


def test_a_run_that_left_nothing_has_no_outcome(tmp_path):
    assert set(read_outcome(RunFolder(tmp_path / "runs" / "digits-1")).values()) == {None}


def test_durations_are_short():
    assert [format_seconds(value) for value in (0.04, 59.96, 83.4)] == ["0.0 s", "60.0 s", "83 s"]


def test_the_demo_has_a_slot_for_each_of_its_ranks_on_one_core_too(monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0})
    monkeypatch.delenv(settings.SLOTS, raising=False)
    unset, told = {}, {settings.SLOTS: "8"}

    make_room(unset)
    make_room(told)

    assert unset == {settings.SLOTS: str(WORKERS)}
    assert told == {settings.SLOTS: "8"}
    assert load_pipeline(DIGITS).spec.cluster.workers == WORKERS
