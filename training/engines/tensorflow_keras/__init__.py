"""Engine `tensorflow`: Keras 3 models under TensorFlow's distribution strategies.

Runs inside the rank process. Nothing here talks to MLflow's server: ranks say what they do as events (ADR 0002).
"""

from __future__ import annotations

from training.engines.tensorflow_keras.evaluation import evaluate
from training.engines.tensorflow_keras.fitting import train
from training.engines.tensorflow_keras.serving import serve

__all__ = ["evaluate", "serve", "train"]
