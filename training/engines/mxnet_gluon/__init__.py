"""Engine `mxnet`: Gluon blocks on one device or several, in one process or in a gang.

Runs inside the rank process. Nothing here talks to MLflow's server: ranks say what they do as events (ADR 0002).
"""

from __future__ import annotations

from training.engines.mxnet_gluon.evaluation import evaluate
from training.engines.mxnet_gluon.fitting import train
from training.engines.mxnet_gluon.serving import serve

__all__ = ["evaluate", "serve", "train"]
