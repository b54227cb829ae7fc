"""The steps of a pipeline, as the Airflow operators and `ganger run` call them.

Each takes a `StepContext`, returns small JSON, and raises errors of `training.errors`. Heavy work happens in supervised
jobs, never in the calling process.
"""

from training.steps.context import StepContext
from training.steps.earlier import set_training_aside
from training.steps.evaluate import evaluate
from training.steps.job import cancel_step
from training.steps.prepare import prepare_data
from training.steps.provision import provision_cluster, release_cluster
from training.steps.register import register_model
from training.steps.stage import start_stage
from training.steps.teardown import teardown_cluster
from training.steps.train import (
    follow_training,
    join_training,
    read_training,
    read_training_standing,
    start_training,
    train,
)

__all__ = [
    "StepContext",
    "cancel_step",
    "evaluate",
    "follow_training",
    "join_training",
    "prepare_data",
    "provision_cluster",
    "read_training",
    "read_training_standing",
    "register_model",
    "release_cluster",
    "set_training_aside",
    "start_stage",
    "start_training",
    "teardown_cluster",
    "train",
]
