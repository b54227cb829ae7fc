"""`make demo`: starts Airflow and MLflow, trains the digits pipeline in a real DAG run, shows what came of it."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, MutableMapping, Sequence

import requests
from rich.console import Console

from tools.airflow_api import AirflowApi, TaskState
from tools.demo_summary import DemoSummary, read_outcome, render_summary
from training import settings
from training.errors import GangerError, InfrastructureError
from training.run.folder import RunFolder, run_id_of
from training.run.job import JobResult
from training.serve import Services, start_services

DAG_ID = "digits"
#: Ranks of that pipeline.
WORKERS = 2
PARSE_TIMEOUT_S = 60.0
RUN_TIMEOUT_S = 600.0
POLL_S = 0.5


def main(arguments: Sequence[str]) -> int:
    """Run the demo and return its exit code: 0 only if the DAG run succeeded."""
    options = _parse(arguments)
    console = Console(highlight=False, soft_wrap=True)
    try:
        make_room(os.environ)
        services = start_services(
            settings.read_home(),
            airflow_port=options.airflow_port,
            mlflow_port=options.mlflow_port,
            log=console.print,
        )
        return run_pipeline(services, console)
    except GangerError as error:
        print(f"Demo stopped: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Interrupted. What was started goes on; stop it with: make stop", file=sys.stderr)
        return 130


def make_room(environ: MutableMapping[str, str]) -> None:
    """Let the ranks of the pipeline share the cores of a machine that has fewer, unless it was told its slots."""
    if not environ.get(settings.SLOTS):
        environ[settings.SLOTS] = str(max(WORKERS, settings.read_slots()))


def run_pipeline(services: Services, console: Console) -> int:
    """Trigger the DAG, follow it to its end, print the summary, and return the exit code.

    Raises:
        GangerError: Airflow does not answer, or does not know the DAG.
    """
    api = AirflowApi(services.airflow_url)
    api.login()
    wait_for_dag(api)
    began = time.monotonic()
    dag_run_id = api.trigger(DAG_ID)
    console.print(f"triggered {DAG_ID}: {services.airflow_url}/dags/{DAG_ID}/runs/{dag_run_id}")
    state = follow_run(api, dag_run_id, console.print)
    seconds = time.monotonic() - began
    run = RunFolder.of(run_id_of(DAG_ID, dag_run_id))
    outcome = read_outcome(run)
    summary = DemoSummary(
        dag_id=DAG_ID,
        dag_run_id=dag_run_id,
        state=state,
        run_id=run.run_id,
        tasks=api.read_tasks(DAG_ID, dag_run_id),
        seconds=seconds,
        mlflow_status=read_mlflow_status(services.mlflow_url, outcome["mlflow_run_id"]),
        urls={"Airflow": f"{services.airflow_url}/dags/{DAG_ID}", "MLflow": services.mlflow_url},
        **outcome,
    )
    if state != "success":
        print_failures(api, summary, run, console)
    console.print(render_summary(summary), soft_wrap=False)
    console.print("Both stay up until: make stop")
    return 0 if state == "success" else 1


def wait_for_dag(api: AirflowApi) -> None:
    """Return when Airflow knows the DAG.

    Raises:
        InfrastructureError: It does not after a while; says which DAG files could not be read.
    """
    deadline = time.monotonic() + PARSE_TIMEOUT_S
    while not api.has_dag(DAG_ID):
        if time.monotonic() > deadline:
            errors = "; ".join(api.import_errors()) or "no import error is known"
            raise InfrastructureError(f"Airflow must know the DAG {DAG_ID} within {PARSE_TIMEOUT_S:.0f} s: {errors}.")
        time.sleep(POLL_S)


def follow_run(api: AirflowApi, dag_run_id: str, log: Callable[[str], None]) -> str:
    """Say of each task when it begins and ends, and return the state that the DAG run ends in.

    Raises:
        InfrastructureError: It does not end in time, or Airflow does not answer.
    """
    deadline = time.monotonic() + RUN_TIMEOUT_S
    said: dict[str, str] = {}
    while True:
        state = api.read_state(DAG_ID, dag_run_id)
        for line in describe_changes(api.read_tasks(DAG_ID, dag_run_id), said):
            log(line)
        if state in ("success", "failed"):
            return state
        if time.monotonic() > deadline:
            raise InfrastructureError(f"DAG run {dag_run_id} must end within {RUN_TIMEOUT_S:.0f} s; it is {state}.")
        time.sleep(POLL_S)


def describe_changes(tasks: Sequence[TaskState], said: dict[str, str]) -> list[str]:
    """Return a line for each task that began, ended or is to be retried since `said`, which is brought up to date."""
    lines = []
    for task in tasks:
        if said.get(task.task_id) == task.state or not (task.is_over or task.state in ("running", "up_for_retry")):
            continue
        said[task.task_id] = task.state
        took = f"  {task.duration_s:.1f} s" if task.duration_s is not None and task.state != "running" else ""
        lines.append(f"  {task.task_id:<18} {task.state}{took}")
    return lines


def print_failures(api: AirflowApi, summary: DemoSummary, run: RunFolder, console: Console) -> None:
    """Print why the run failed: the headline of each failed job, and the end of each failed task's log."""
    for job in run.jobs():
        result = JobResult.read(job.result)
        if result is not None and result.failure is not None:
            console.print(f"{job.job_id}: {result.failure.message}", style="red", markup=False)
    for task in summary.tasks:
        if task.state == "failed":
            console.print(f"The log of {task.task_id} ends with:", style="bold")
            for line in api.read_log(summary.dag_id, summary.dag_run_id, task):
                console.print(f"  {line}", markup=False)


def read_mlflow_status(url: str, mlflow_run_id: str | None) -> str | None:
    """Return MLflow's word for the state of a run; None when there is none.

    Raises:
        InfrastructureError: MLflow does not answer.
    """
    if mlflow_run_id is None:
        return None
    try:
        with requests.Session() as session:
            session.trust_env = False
            answer = session.get(f"{url}/api/2.0/mlflow/runs/get", params={"run_id": mlflow_run_id}, timeout=30)
    except requests.RequestException as error:
        raise InfrastructureError(f"MLflow at {url} must answer and does not ({type(error).__name__}).") from error
    return str(answer.json()["run"]["info"]["status"]) if answer.ok else None


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make demo", description=__doc__)
    parser.add_argument("--airflow-port", type=int, help="port of Airflow; by default 8080 or the next free one")
    parser.add_argument("--mlflow-port", type=int, help="port of MLflow; by default 5000 or the next free one")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
