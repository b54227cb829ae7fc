"""Stands in for the training of `training.steps`, so that an operator's calls can be answered and looked at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from training import steps
from training.run.standing import Standing
from training.steps import StepContext


@dataclass
class FakeTraining:
    """A training of one run folder: `act` is what it does; an error that it raises is how it fails.

    Attributes:
        standing: Where it stands.
        calls: What was called, in order.
    """

    act: Callable[[StepContext], dict[str, Any]] = lambda ctx: {}
    standing: Standing = Standing.ABSENT
    calls: list[str] = field(default_factory=list)
    values: dict[str, Any] = field(default_factory=dict)

    def install(self, patch: pytest.MonkeyPatch) -> FakeTraining:
        for name in ("train", "set_training_aside", "start_training", "join_training", "follow_training"):
            patch.setattr(steps, name, getattr(self, name))
        patch.setattr(steps, "read_training_standing", lambda ctx: self.standing)
        patch.setattr(steps, "read_training", lambda ctx: self.values)
        return self

    def train(self, ctx: StepContext) -> dict[str, Any]:
        self.start_training(ctx)
        self.follow_training(ctx)
        return self.values

    def set_training_aside(self, ctx: StepContext) -> bool:
        if self.standing is not Standing.SUCCEEDED:
            return False
        self.calls.append("set aside")
        self.standing = Standing.ABSENT
        return True

    def start_training(self, ctx: StepContext) -> int:
        self.calls.append("start")
        self.standing = Standing.ACTIVE
        return 7

    def join_training(self, ctx: StepContext) -> int:
        self.calls.append("join")
        return 0

    def follow_training(self, ctx: StepContext, offset: int = 0) -> None:
        self.calls.append(f"follow from {offset}")
        try:
            self.values = self.act(ctx)
        except Exception:
            self.standing = Standing.FAILED
            raise
        self.standing = Standing.SUCCEEDED
