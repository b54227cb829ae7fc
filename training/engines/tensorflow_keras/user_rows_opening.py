"""Opens a user's `build_dataset` on all ranks together: measured, counted once, compared, before anything trains."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from training.engines.agreement import share_from_chief
from training.engines.tensorflow_keras.rows import FEW_ROWS
from training.engines.tensorflow_keras.strategies.strategy import Strategy
from training.engines.tensorflow_keras.user_dataset import UserDataset, count_batches, digest_batch, look_up_size
from training.engines.tensorflow_keras.user_rows import UserBatches, UserRows, read_held_out
from training.errors import spec_error
from training.model_file import ModelFile
from training.plan.batches import choose_per_rank_batch_size
from training.plan.epochs import EpochPlan, ShardSize, plan_epoch
from training.run.rank import RankContext
from training.spec.pipeline import BUILD_DATASET, DataSpec, PipelineSpec

_DIGEST_DIGITS = 12  # 48 bits: whole in a float64


def open_user_rows(ctx: RankContext, spec: PipelineSpec, strategy: Strategy, file: ModelFile) -> UserRows:
    """Return the rows that `build_dataset` gives. It waits for the other ranks: each must call this.

    Raises:
        SpecError: The function does not do, ranks do not agree in what it gives, or it gives too little.
    """
    per_replica = choose_per_rank_batch_size(spec.train.batch_size, strategy.replicas)
    opening = _Opening(ctx, spec, strategy, file)
    epoch = opening.plan_epoch()
    digests = opening.compare_first_batches()
    return UserRows(
        user=opening.user,
        batches=UserBatches(
            global_batch_size=spec.train.batch_size,
            per_rank_batch_size=per_replica,
            rows=epoch.steps * spec.train.batch_size,
            steps_per_epoch=epoch.steps,
            dropped_rows_per_epoch=0,
        ),
        epoch=epoch,
        example=tf.nest.map_structure(lambda leaf: leaf[:FEW_ROWS], next(iter(opening.firsts.values()))),
        fingerprint=_take_fingerprint(opening.data, epoch.steps, digests[0]),
        holds_out=opening.agree_on_validation(),
        shards=opening.shards,
        ctx=ctx,
    )


class _Opening:
    """What a rank sees of the function, and what the ranks make of it together."""

    def __init__(self, ctx: RankContext, spec: PipelineSpec, strategy: Strategy, file: ModelFile) -> None:
        self._ctx, self._spec, self._strategy = ctx, spec, strategy
        self.data = spec.data or DataSpec(source=BUILD_DATASET)
        self.user = UserDataset(file, self.data, spec.train.seed, ctx.threads)
        self.shards = strategy.replicas if self.data.sharding == "own" else 1
        self._rows = spec.train.batch_size // self.shards
        mine = range(self.shards) if ctx.world_size == 1 else [ctx.rank]
        self._built = {number: self._build(number) for number in mine}
        self.firsts = {number: self.user.read_first(one, self._rows) for number, one in self._built.items()}

    def plan_epoch(self) -> EpochPlan:
        """Return what an epoch is, the same on every rank, and tell what is left out."""
        sizes = {number: self._measure(dataset) for number, dataset in self._built.items()}
        batches = self._gather({n: math.nan if size.batches is None else size.batches for n, size in sizes.items()})
        left_out, endless = (self._gather({n: getattr(size, what) for n, size in sizes.items()}) for what in _TOLD)
        agreed = [
            ShardSize(batches=None if math.isnan(number) else int(number), left_out=int(rest), endless=bool(never))
            for number, rest, never in zip(batches, left_out, endless, strict=True)
        ]
        train = self._spec.train
        epoch = plan_epoch(train.steps_per_epoch, agreed, sharded=self.shards > 1, limit_s=train.start_timeout_s)
        self._log(*epoch.notes)
        return epoch

    def compare_first_batches(self) -> list[float]:
        """Return a digest of each first batch.

        Raises:
            SpecError: Ranks that should have the same batches have others (K24).
        """
        own = {n: int(digest_batch(first)[:_DIGEST_DIGITS], 16) for n, first in self.firsts.items()}
        digests = self._gather(own)
        if self.shards > 1 and len(set(digests)) < len(digests):
            self._log(f"note: two shards of {BUILD_DATASET} begin with the same batch. Does it use shard and shards?")
        if self.shards == 1 and len(set(digests)) > 1:
            others = [str(rank) for rank, digest in enumerate(digests) if digest != digests[0]]
            raise self.user.refuse(
                "must give every rank the same batches with data.sharding: ganger, which cuts them into shares. "
                f"Received: other ones on rank {', '.join(others)} than on rank 0.",
                "Seed what is random by the argument seed, or shard there and set data.sharding: own.",
            )
        return digests

    def agree_on_validation(self) -> bool:
        """Return whether there are held-out rows, as the chief sees it.

        Raises:
            SpecError: There are none, and something is required of them; or they have no end.
        """
        is_chief = self._ctx.is_chief
        found = is_chief and read_held_out(self.user, self._spec.train.batch_size) is not None
        holds_out: bool = share_from_chief(self._strategy, found, is_chief=is_chief)
        if self._spec.evaluate.require and not holds_out:
            message = f"needs held-out rows. Received: a {BUILD_DATASET} that returns None for split 'validation'."
            raise spec_error("evaluate.require", message, "Return a dataset for it, or leave the requirements out.")
        return holds_out

    def _build(self, number: int) -> Any:
        shard = number if self.shards > 1 else 0
        return self.user.build("train", batch_size=self._rows, shard=shard, shards=self.shards)

    def _measure(self, dataset: Any) -> ShardSize:
        train = self._spec.train
        if train.steps_per_epoch is not None:
            return look_up_size(dataset)
        return count_batches(dataset, self._rows, train.start_timeout_s, self._ctx.heartbeat)

    def _gather(self, mine: Mapping[int, float]) -> list[float]:
        """Return a number of each shard, or else of each rank."""
        values = np.zeros(self.shards if self._ctx.world_size == 1 else self._ctx.world_size)
        for number, value in mine.items():
            values[number] = value
        return [float(value) for value in self._strategy.add_up(values)]

    def _log(self, *lines: str) -> None:
        for line in lines if self._ctx.is_chief else ():
            print(line, flush=True)


_TOLD = ("left_out", "endless")


def _take_fingerprint(data: DataSpec, steps: int, digest: float) -> dict[str, Any]:
    """Return what is known of rows that nobody hashed: how they are made, and the first batch, where all have it."""
    told: dict[str, Any] = {"data.params": data.params, "data.sharding": data.sharding, "train.steps_per_epoch": steps}
    return told if data.sharding == "own" else {**told, "data": f"{BUILD_DATASET} {int(digest):012x}"}
