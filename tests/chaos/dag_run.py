"""Run as a process, `python -m tests.chaos.dag_run URL DAG_ID`: triggers the DAG and waits, as a person would.

It speaks as `ganger run --json` does: the id of the run first, at the end the state; before it, the log of the last try
of the task `train`.
"""

from __future__ import annotations

import json
import sys
import time

from tools.airflow_api import AirflowApi
from training.run.folder import run_id_of

_PARSE_TIMEOUT_S = 90.0
_POLL_S = 0.3
_LOG_LINES = 1000


def main(url: str, dag_id: str) -> None:
    """Trigger, wait, tell."""
    api = AirflowApi(url)
    api.login()
    end = time.monotonic() + _PARSE_TIMEOUT_S
    while not api.has_dag(dag_id):
        assert time.monotonic() < end, f"Airflow must know {dag_id}; {api.import_errors()}"
        time.sleep(_POLL_S)
    dag_run_id = api.trigger(dag_id)
    print(f"run {run_id_of(dag_id, dag_run_id)}", file=sys.stderr, flush=True)
    while (state := api.read_state(dag_id, dag_run_id)) not in ("success", "failed"):
        time.sleep(_POLL_S)
    tasks = api.read_tasks(dag_id, dag_run_id)
    (train,) = [task for task in tasks if task.task_id == "train"]
    print("\n".join(api.read_log(dag_id, dag_run_id, train, _LOG_LINES)), file=sys.stderr, flush=True)
    tries = {task.task_id: f"{task.state}, try {task.try_number}" for task in tasks}
    print(json.dumps({"state": "succeeded" if state == "success" else "failed", "error": str(tries)}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
