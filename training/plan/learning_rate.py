"""By what the learning rate of a model is multiplied: pure, the same for every engine."""

from __future__ import annotations

import math

from training.spec.parallelism import count_replicas
from training.spec.pipeline import PipelineSpec


def choose_factor(spec: PipelineSpec) -> float:
    """Return by what the model's rate is to be multiplied.

    It counts the replicas that the spec asks for: a gang that goes on with fewer has the same global batch.
    Source: P. Goyal et al., "Accurate, Large Minibatch SGD", 2017, https://arxiv.org/abs/1706.02677.
    """
    replicas = count_replicas(spec.train.strategy, spec.workers, spec.cluster.devices)
    match spec.train.learning_rate_scaling:
        case "linear":
            return float(replicas)
        case "sqrt":
            return math.sqrt(replicas)
    return 1.0


def plan_warmup(update: int, factor: float, warmup_updates: int) -> float:
    """Return by what the rate of one update is multiplied: it rises linearly to `factor`.

    Args:
        update: Number of the update, from 1.
        factor: What it rises to.
        warmup_updates: Updates until then; it begins at the model's own rate, or at 0 with a factor of 1.

    >>> [plan_warmup(update, 2.0, 4) for update in (1, 2, 4, 9)]
    [1.25, 1.5, 2.0, 2.0]
    """
    begin = 1 / factor if factor > 1 else 0.0
    done = min(update / warmup_updates, 1.0) if warmup_updates else 1.0
    return factor * (begin + (1 - begin) * done)
