"""What became of the weights that a training starts from, in words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadReport:
    """What became of the weights of another model.

    Attributes:
        loaded: Variables that have its values.
        reshaped: Variables that it has in another shape.
        absent: Variables that it has not.
        unused: Variables of it that the model has not.
    """

    loaded: tuple[str, ...]
    reshaped: tuple[str, ...]
    absent: tuple[str, ...]
    unused: tuple[str, ...]

    def __str__(self) -> str:
        parts = [f"{len(self.loaded)} loaded ({', '.join(self.loaded)})"]
        parts += [f"{len(names)} {what} ({', '.join(names)})" for what, names in self._rest() if names]
        return "; ".join(parts)

    def _rest(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        yield "of another shape, as built", self.reshaped
        yield "not in it, as built", self.absent
        yield "of it not used", self.unused
