"""DAGs for the live tests: `whole`, as its file makes it, and two written by hand with the operators."""

from datetime import timedelta
from pathlib import Path

from airflow.sdk import DAG

from ganger.collection import build_dags
from ganger.operators import (
    PrepareDataOperator,
    TeardownClusterOperator,
    TensorFlowTrainingOperator,
)

PIPELINE = {
    "data": {"source": "digits"},
    "model": {"entrypoint": "slow_net.py", "params": {"hold_step": 5}},
    "train": {"engine": "tensorflow", "epochs": 1, "batch_size": 128, "checkpoint": {"every_steps": 2}},
}


def make_dag(name, **arguments):
    """Return a DAG that trains in one process and tears down; `arguments` are for the training operator."""
    pipeline = {"name": name, **PIPELINE}
    with DAG(name, schedule=None, default_args={"retries": 1, "retry_delay": timedelta(seconds=1)}) as dag:
        prepare = PrepareDataOperator(task_id="prepare_data", pipeline=pipeline)
        train = TensorFlowTrainingOperator(task_id="train", pipeline=pipeline, **arguments)
        teardown = TeardownClusterOperator(task_id="teardown_cluster", pipeline=pipeline)
        prepare >> train >> teardown.as_teardown()
    return dag


lone = make_dag("lone")
# Long enough for the gang to come up on a busy machine, and waited for in full.
limited = make_dag("limited", execution_timeout=timedelta(seconds=25), retries=0)
globals().update(build_dags([Path(__file__).parent]))
for task in globals()["whole"].tasks:
    task.retry_delay = timedelta(seconds=1)
