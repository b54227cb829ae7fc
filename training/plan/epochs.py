"""What an epoch of a user's own dataset is: a pure function of the steps asked for and of its shards' sizes (K23)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from training.errors import SpecError, spec_error
from training.spec.pipeline import BUILD_DATASET

_FIELD = "train.steps_per_epoch"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardSize:
    """What is known of the length of one pass over one shard.

    Attributes:
        batches: Number of whole batches; None where it is not known, or counting it was given up.
        left_out: Rows in batches that are not whole.
        endless: Whether it never ends.
    """

    batches: int | None = None
    left_out: int = 0
    endless: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochPlan:
    """How passes over a dataset become epochs.

    Attributes:
        steps: Steps of an epoch, the same on every rank.
        is_pass: Whether each epoch is a new pass, cut after `steps`; else it goes on where the last one ended.
        counted: Whether the batches were counted, rather than the steps asked for.
        notes: What there is to say.
    """

    steps: int
    is_pass: bool
    counted: bool = False
    notes: tuple[str, ...] = ()


def plan_epoch(asked: int | None, sizes: Sequence[ShardSize], *, sharded: bool, limit_s: float) -> EpochPlan:
    """Return what an epoch is.

    Args:
        asked: `train.steps_per_epoch`.
        sizes: Of all shards, or what each rank has found of the one dataset that all have.
        sharded: Which of these it is.
        limit_s: How long counting was allowed to take.

    Raises:
        SpecError: Nobody knows how many steps there are, there are fewer than asked for, or ranks do not agree.
    """
    if asked is None:
        return _count_epoch(sizes, sharded, limit_s)
    known = [size.batches for size in sizes if size.batches is not None]
    if known and min(known) < asked:
        raise refuse_steps(asked, min(known), "a pass")
    return EpochPlan(steps=asked, is_pass=len(known) == len(sizes))


def refuse_steps(asked: int, got: int, where: str, *, counted: bool = False) -> SpecError:
    """Return the error of a dataset that has ended too early.

    >>> print(refuse_steps(12, 10, "at epoch 1"))
    train.steps_per_epoch: asked 12 steps, got 10 at epoch 1. Lower it, leave it out to have them counted, or add \
.repeat() to the dataset.
    """
    if counted:
        message = (
            f"{BUILD_DATASET} must give as many batches in each pass. Received: {got} {where}, {asked} when counted."
        )
        return spec_error("model.entrypoint", message, f"Set {_FIELD}.")
    remedy = "Lower it, leave it out to have them counted, or add .repeat() to the dataset."
    return spec_error(_FIELD, f"asked {asked} steps, got {got} {where}.", remedy)


def _count_epoch(sizes: Sequence[ShardSize], sharded: bool, limit_s: float) -> EpochPlan:
    if any(size.endless for size in sizes):
        raise spec_error(
            _FIELD, f"is missing; the dataset of {BUILD_DATASET} has no end.", "Say how many make an epoch."
        )
    counts = [size.batches for size in sizes if size.batches is not None]
    if len(counts) < len(sizes):
        message = (
            f"is missing; the batches of {BUILD_DATASET} were not counted within train.start_timeout_s, {limit_s:g} s"
        )
        raise spec_error(_FIELD, f"{message}: perhaps they never end.", "Say how many make an epoch.")
    if len(set(counts)) > 1 and not sharded:
        message = (
            f"must give every rank the same batches with data.sharding: ganger. Received: {_list(counts)} batches."
        )
        raise spec_error("model.entrypoint", f"{BUILD_DATASET} {message}", "Or shard them there, and set it to own.")
    if min(counts) < 1:
        raise spec_error("train.batch_size", "an epoch must have at least one step. Received: no whole batch.")
    return EpochPlan(steps=min(counts), is_pass=True, counted=True, notes=tuple(_note(sizes, counts, sharded)))


def _note(sizes: Sequence[ShardSize], counts: Sequence[int], sharded: bool) -> list[str]:
    notes = []
    if len(set(counts)) > 1:
        notes.append(f"the shards have {_list(counts)} batches: an epoch is {min(counts)} steps, the rest is left out")
    left_out = sum(size.left_out for size in (sizes if sharded else sizes[:1]))
    if left_out:
        notes.append(f"{left_out} rows a pass fill no whole batch and are left out")
    return notes


def _list(counts: Sequence[int]) -> str:
    return ", ".join(map(str, counts))
