"""A training of a Gluon block."""

from __future__ import annotations

from training.engines.mxnet_gluon.strategies.strategy import Strategy
from training.engines.training_job import TrainingJob as AnyTrainingJob

TrainingJob = AnyTrainingJob[Strategy]
