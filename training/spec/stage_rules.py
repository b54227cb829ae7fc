"""Rules between `train.pipeline` and the other blocks, which `rules` runs (K31)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from training.spec.mistake import Mistake


def check_stages(strategy: str, stages: int | None, cluster: Mapping[str, object] | None) -> Mistake | None:
    """Require two stages at least, and as many as workers where both are said."""
    if strategy != "pipeline":
        return None
    workers = (cluster or {}).get("workers")
    if stages is None:
        if isinstance(workers, int) and workers > 1:
            return None
        message = "is missing, and cluster.workers names fewer than 2 stages."
        return Mistake(path=("train", "pipeline", "stages"), message=message, remedy="Set it to 2, say.")
    if workers is None or workers == stages:
        return None
    message = f"must equal cluster.workers, {workers}, since each worker is a stage. Received: {stages}."
    return Mistake(path=("train", "pipeline", "stages"), message=message, remedy="Leave cluster.workers out.")


def check_stage_micro_batches(
    strategy: str, micro_batches: int, stages: int | None, workers: int, batch_size: int
) -> Mistake | None:
    """Require work for every stage at once, and a row in every micro-batch (K31)."""
    if strategy != "pipeline":
        return None
    path = ("train", "pipeline", "micro_batches")
    count = stages or workers
    if micro_batches < count:
        message = (
            f"must be at least the number of stages, {count}, or some would never work. Received: {micro_batches}."
        )
        return Mistake(path=path, message=message, remedy=f"Set it to {4 * count}, say.")
    if micro_batches > batch_size:
        message = f"must be at most train.batch_size, {batch_size}, for each to have a row. Received: {micro_batches}."
        return Mistake(path=path, message=message, remedy="Lower it, or raise train.batch_size.")
    return None


def check_partition(strategy: str, partition: str | Sequence[int], stages: int | None, workers: int) -> Mistake | None:
    """Require one number for each stage; whether they fit the model is known when it is built."""
    count = stages or workers
    if strategy != "pipeline" or isinstance(partition, str) or len(partition) == count:
        return None
    message = f"must hold one number of layers for each of the {count} stages. Received: {len(partition)} numbers."
    return Mistake(path=("train", "pipeline", "partition"), message=message, remedy="Use `auto` to balance the stages.")
