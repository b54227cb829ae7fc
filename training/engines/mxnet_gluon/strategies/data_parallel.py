"""Strategy `data_parallel`: one process, a copy of the block on each of its devices.

https://mxnet.apache.org/versions/1.9.1/api/python/docs/tutorials/extend/multi_device.html
"""

from __future__ import annotations

from training.engines.mxnet_gluon.runtime import choose_contexts
from training.engines.mxnet_gluon.strategies.replicas import OneProcess, ReplicasOnContexts
from training.run.rank import RankContext


class DataParallel(ReplicasOnContexts, OneProcess):
    """GPUs, or parts of the CPU where there are none.

    Args:
        ctx: What the launcher made of this process.

    Raises:
        PreflightError: There are fewer GPUs than were asked for.
    """

    def __init__(self, ctx: RankContext) -> None:
        self.contexts = choose_contexts(ctx.devices)
        self.replicas = len(self.contexts)
        # `device` adds up on GPUs; on the CPU's contexts it would ask for access from one to the other.
        self.kvstore = "device" if self.contexts[0].device_type == "gpu" else "local"
