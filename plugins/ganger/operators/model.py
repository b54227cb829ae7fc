"""The operators that deal with the trained model."""

from __future__ import annotations

from ganger.links import MLflowRunLink
from ganger.operators.base import StepOperator


class EvaluateModelOperator(StepOperator):
    """Evaluates the trained model on the held-out rows and holds it to `evaluate.require`."""

    step = "evaluate"
    operator_extra_links = (MLflowRunLink(),)


class RegisterModelOperator(StepOperator):
    """Registers the trained model in the MLflow model registry, as the `register` block says."""

    step = "register_model"
    operator_extra_links = (MLflowRunLink(),)
