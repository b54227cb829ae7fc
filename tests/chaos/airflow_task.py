"""Run as a process: one DAG run of one DAG by Airflow's own in-process runner, `dag.test()`, with real operators.

    python airflow_task.py DAG_ID LOGICAL_DATE

A second call with the same date is the same DAG run, and so the same run of ours.
"""

from __future__ import annotations

import json
import sys
from datetime import datetime

from airflow.dag_processing.dagbag import DagBag
from airflow.models.dagrun import DagRun
from airflow.utils.types import DagRunType

from training import settings
from training.run.folder import run_id_of


def main(dag_id: str, date: str) -> None:
    """Run the DAG, tell the run's id on standard error first, and how it ended on standard output."""
    logical_date = datetime.fromisoformat(date)
    dag_run_id = DagRun.generate_run_id(run_type=DagRunType.MANUAL, logical_date=logical_date, run_after=logical_date)
    print(f"run {run_id_of(dag_id, dag_run_id)}", file=sys.stderr, flush=True)
    dag = DagBag(str(settings.REPOSITORY / "dags")).dags[dag_id]
    run = dag.test(logical_date=logical_date)
    states = {task.task_id: str(task.state) for task in run.get_task_instances()}
    print(json.dumps({"state": "succeeded" if run.state == "success" else "failed", "error": str(states)}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
