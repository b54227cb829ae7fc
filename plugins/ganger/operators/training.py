"""The operators that train, one per engine."""

from __future__ import annotations

from typing import Any, ClassVar

from ganger.links import MLflowRunLink
from ganger.operators.base import PipelineSource, StepOperator
from training.errors import spec_error


class TrainingOperator(StepOperator):
    """Trains with one supervised gang of processes. Use the subclass for the engine of the spec.

    Raises:
        SpecError: The spec is for another engine, or wrong.
    """

    step = "train"
    engine: ClassVar[str]
    """What `train.engine` must be."""
    operator_extra_links = (MLflowRunLink(),)
    ui_color = "#cfe8d5"

    def __init__(self, *, pipeline: PipelineSource, **kwargs: Any) -> None:
        super().__init__(pipeline=pipeline, **kwargs)
        engine = self.pipeline.spec.train.engine
        if engine != self.engine:
            raise spec_error(
                "train.engine",
                f"{type(self).__name__} needs engine {self.engine}. Received: {engine}.",
                f"Use {TRAINING_OPERATORS[engine].__name__}.",
            )


class TensorFlowTrainingOperator(TrainingOperator):
    """Trains a Keras model with TensorFlow."""

    engine = "tensorflow"


class HorovodTrainingOperator(TrainingOperator):
    """Trains a Keras or Gluon model with Horovod."""

    engine = "horovod"


class MXNetTrainingOperator(TrainingOperator):
    """Trains a Gluon model with MXNet."""

    engine = "mxnet"


#: Engine of a spec to the operator that trains it.
TRAINING_OPERATORS: dict[str, type[TrainingOperator]] = {
    operator.engine: operator
    for operator in (TensorFlowTrainingOperator, HorovodTrainingOperator, MXNetTrainingOperator)
}
