"""The steps of a pipeline as Airflow operators, for the DAGs made of files and for DAGs written by hand."""

from ganger.operators.base import StepOperator
from ganger.operators.cluster import ProvisionClusterOperator, TeardownClusterOperator
from ganger.operators.data import PrepareDataOperator
from ganger.operators.model import EvaluateModelOperator, RegisterModelOperator
from ganger.operators.stage import PipelineStageOperator
from ganger.operators.training import (
    HorovodTrainingOperator,
    MXNetTrainingOperator,
    TensorFlowTrainingOperator,
    TrainingOperator,
)

__all__ = [
    "EvaluateModelOperator",
    "HorovodTrainingOperator",
    "MXNetTrainingOperator",
    "PipelineStageOperator",
    "PrepareDataOperator",
    "ProvisionClusterOperator",
    "RegisterModelOperator",
    "StepOperator",
    "TeardownClusterOperator",
    "TensorFlowTrainingOperator",
    "TrainingOperator",
]
