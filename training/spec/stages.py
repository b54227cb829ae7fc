"""The block `train.pipeline`: how a model is split into stages, and in which order these work."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

from training.spec.base import PositiveInt, SpecModel


def _choose_shape(value: object) -> Literal["text", "list"] | None:
    if isinstance(value, str):
        return "text"
    return "list" if isinstance(value, list | tuple) else None


Partition = Annotated[
    Annotated[Literal["auto"], Tag("text")] | Annotated[tuple[PositiveInt, ...], Tag("list")],
    Discriminator(
        _choose_shape,
        custom_error_type="shape",
        custom_error_message="must be `auto`, or a list of the number of layers of each stage",
    ),
]


class StagesSpec(SpecModel):
    """How a model is split into stages, for the strategy `pipeline` (docs/guides/pipeline.md)."""

    stages: Annotated[PositiveInt, Field(ge=2)] | None = None
    """Number of stages, each a worker; by default `cluster.workers`."""
    micro_batches: PositiveInt = 8
    """Parts of a global batch, which follow one another through the stages; as many as stages at least."""
    schedule: Literal["1f1b", "gpipe"] = "1f1b"
    """In which order a stage works: backward as soon as it can (less memory), or all forwards first."""
    partition: Partition = "auto"
    """Number of layers of each stage; `auto` balances what they cost."""
