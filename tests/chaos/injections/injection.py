"""What an injection is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tests.chaos.fault import Fault
from tests.chaos.trial import Trial


def do_nothing(trial: Trial) -> None:
    """Leave the training alone."""


def _no_variables(fault: Fault) -> dict[str, str]:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Injection:
    """How a kind of fault is done.

    Attributes:
        act: Does it, while the first command runs.
        mend: Called between the first command and the one that goes on.
        options: Fields of the spec's `train` block that the kind needs.
        render_env: Variables of the commands' environment.
    """

    act: Callable[[Trial], None] = do_nothing
    mend: Callable[[Trial], None] = do_nothing
    options: dict[str, object] = field(default_factory=dict)
    render_env: Callable[[Fault], dict[str, str]] = _no_variables
