"""An example of a DAG written by hand with Ganger's operators: the pipeline in Python, between tasks of one's own."""

from airflow.sdk import DAG, task

from ganger.operators import (
    EvaluateModelOperator,
    PrepareDataOperator,
    ProvisionClusterOperator,
    TeardownClusterOperator,
    TensorFlowTrainingOperator,
)

PIPELINE = {
    "name": "hand_written_example",
    "data": {"source": "digits"},
    "model": {"entrypoint": "training.models.mlp", "params": {"hidden": [64]}},
    "train": {"engine": "tensorflow", "strategy": "multi_worker_mirrored", "epochs": 3, "batch_size": 64},
    "cluster": {"workers": 2},
}

with DAG("hand_written_example", schedule=None, tags=["ganger", "example"], doc_md=__doc__):

    @task
    def announce(metrics: dict[str, float]) -> None:
        """Stand for whatever a team does with the numbers."""
        print("Trained:", ", ".join(f"{name} {value:.3f}" for name, value in metrics.items()))

    prepare = PrepareDataOperator(task_id="prepare_data", pipeline=PIPELINE)
    provision = ProvisionClusterOperator(task_id="provision_cluster", pipeline=PIPELINE)
    train = TensorFlowTrainingOperator(task_id="train", pipeline=PIPELINE)
    evaluate = EvaluateModelOperator(task_id="evaluate", pipeline=PIPELINE)
    teardown = TeardownClusterOperator(task_id="teardown_cluster", pipeline=PIPELINE)

    [prepare, provision] >> train >> evaluate >> announce(evaluate.output["metrics"])
    evaluate >> teardown.as_teardown(setups=provision)
