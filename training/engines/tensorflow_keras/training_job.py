"""A training of a Keras model."""

from __future__ import annotations

from training.engines.tensorflow_keras.strategies.strategy import Strategy
from training.engines.training_job import TrainingJob as AnyTrainingJob
from training.engines.training_job import read_training_job, require_model

__all__ = ["TrainingJob", "read_training_job", "require_model"]

TrainingJob = AnyTrainingJob[Strategy]
