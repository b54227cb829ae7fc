"""Strategy `single`: one process, one device; the measure for all others."""

from __future__ import annotations

from training.engines.mxnet_gluon.runtime import choose_contexts
from training.engines.mxnet_gluon.strategies.replicas import OneProcess, ReplicasOnContexts
from training.run.rank import RankContext


class Single(ReplicasOnContexts, OneProcess):
    """The first GPU, or the CPU.

    Args:
        ctx: What the launcher made of this process.
    """

    replicas = 1

    def __init__(self, ctx: RankContext) -> None:
        self.contexts = choose_contexts(1)
