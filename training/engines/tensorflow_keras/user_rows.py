"""The rows of a user's `build_dataset` as steps: measured and compared among ranks, cut into shares, fed.

With `data.sharding: ganger` every rank has the same global batches, of which each replica takes its part, as it does of
prepared rows (ADR 3). With `own` the function itself is called for each replica's share. Never both (K24).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import tensorflow as tf

from training.engines.tensorflow_keras.feeding import choose_options
from training.engines.tensorflow_keras.rows import Batch, HeldOutRows
from training.engines.tensorflow_keras.shares import cut
from training.engines.tensorflow_keras.user_dataset import UserDataset, look_up_size
from training.errors import GangerError
from training.plan.batches import BatchPlan
from training.plan.epochs import EpochPlan, refuse_steps
from training.run.rank import RankContext
from training.spec.pipeline import BUILD_DATASET

_PULSE_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class UserRows:
    """The rows of one training.

    Attributes:
        user: Makes pipelines.
        batches: How their batches become steps.
        epoch: Whether a pass is an epoch.
        example: The first rows, as NumPy arrays.
        fingerprint: What a checkpoint must agree in.
        holds_out: Whether there is a pipeline for validation.
        shards: Into how many shares the function itself cuts a global batch; 1 where Ganger does.
        ctx: Who this rank is.
    """

    user: UserDataset
    batches: BatchPlan
    epoch: EpochPlan
    example: Batch
    fingerprint: dict[str, Any]
    holds_out: bool
    shards: int
    ctx: RankContext
    _ends: list[bool] = field(default_factory=list)

    def read_held_out(self) -> HeldOutRows:
        """Return the pipeline for validation, whole: the chief evaluates alone."""
        held_out = read_held_out(self.user, self.batches.global_batch_size)
        if held_out is None:
            raise self.user.refuse("must return a dataset for split 'validation' each time. Received: None.")
        return held_out

    def feed(self, first_step: int, last_step: int, index: int, count: int) -> Any:
        """Return part `index` of `count` of each step's global batch, from one step up to and without another."""
        if self.shards > 1 and count == self.shards:
            steps = self._stream(index)
        else:
            steps = _join([self._stream(shard) for shard in range(self.shards)])
        steps = self._pass_over(steps, first_step)
        if self.shards == 1 and count > 1:
            steps = steps.map(lambda *batch: cut(batch, index, count))
        threads = self.ctx.threads
        return steps.prefetch(2).with_options(choose_options(threads))

    def explain(self, step: int) -> GangerError | None:
        """Return that the pipeline ended too early, where it did (K23)."""
        if not self._ends:
            return None
        epoch, got = divmod(step, self.batches.steps_per_epoch)
        return refuse_steps(self.batches.steps_per_epoch, got, f"at epoch {epoch + 1}", counted=self.epoch.counted)

    def _stream(self, shard: int) -> Any:
        """Return the whole batches of one shard, epoch after epoch; where they end too early, an error."""
        rows = self.batches.global_batch_size // self.shards
        built = self.user.build("train", batch_size=rows, shard=shard, shards=self.shards)
        batches = self.user.keep_whole(built, rows)
        batches = batches.concatenate(self._end(batches.element_spec))
        return batches.take(self.batches.steps_per_epoch).repeat() if self.epoch.is_pass else batches

    def _end(self, spec: Any) -> Any:
        """Return a dataset of elements that cannot be had: without an end, of which Keras would make a green one."""
        leaves = tf.nest.flatten(spec)

        def end(_: Any) -> Any:
            values = tf.numpy_function(self._note_end, [], [leaf.dtype for leaf in leaves])
            shaped = [tf.ensure_shape(value, leaf.shape) for value, leaf in zip(values, leaves, strict=True)]
            return tf.nest.pack_sequence_as(spec, shaped)

        return tf.data.Dataset.range(1).repeat().map(end)

    def _note_end(self) -> None:
        self._ends.append(True)
        raise ValueError(f"the batches of {BUILD_DATASET} have ended")

    def _pass_over(self, steps: Any, count: int) -> Any:
        """Return `steps` without the first `count`, which are read: only so the ones after are the same as ever."""
        if not count:
            return steps
        told = [time.monotonic()]

        def beat(number: Any) -> bool:
            if time.monotonic() - told[0] > _PULSE_S:
                told[0] = time.monotonic()
                self.ctx.heartbeat(f"passing over step {number} of {count}")
            return False

        def is_due(number: Any, _: Any) -> Any:
            return tf.cond(number < count, lambda: tf.numpy_function(beat, [number], tf.bool), lambda: True)

        return steps.enumerate().filter(is_due).map(lambda _, batch: batch)


class UserBatches(BatchPlan):
    """Steps whose rows nobody but `build_dataset` knows."""

    __slots__ = ()

    def __str__(self) -> str:
        return (
            f"{self.steps_per_epoch} steps an epoch of {self.global_batch_size} rows "
            f"({self.per_rank_batch_size} a replica) from {BUILD_DATASET}"
        )


def read_held_out(user: UserDataset, batch_size: int) -> HeldOutRows | None:
    """Return the pipeline for validation; None where there is none.

    Raises:
        SpecError: It has no end.
    """
    dataset = user.build("validation", batch_size=batch_size)
    if dataset is None:
        return None
    if look_up_size(dataset).endless:
        raise user.refuse("must give a dataset that ends for split 'validation'.", "Leave out .repeat().")
    return HeldOutRows(x=dataset)


def _join(streams: Sequence[Any]) -> Any:
    """Return batches that hold one of each stream, one after the other."""
    if len(streams) == 1:
        return streams[0]
    return tf.data.Dataset.zip(tuple(streams)).map(
        lambda *parts: tf.nest.map_structure(lambda *leaves: tf.concat(leaves, axis=0), *parts)
    )
