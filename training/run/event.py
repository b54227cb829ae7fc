r"""What ranks tell the supervisor: structured events between their ordinary output.

An event is one line of standard output: the record separator U+001E, a JSON object, a line feed, as in RFC 7464 ("JSON
text sequences"). Every backend carries standard output, so no backend needs a port or a shared disk for it (ADR 0002).
Text before the separator on the same line is ordinary output that lacked its line feed.
"""

from __future__ import annotations

import json
import time
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

RECORD_SEPARATOR = "\x1e"


class _Event(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    rank: int
    time: float = Field(default_factory=time.time)
    """Seconds since the epoch, on the rank's clock."""


class Ready(_Event):
    """The rank has joined its peers and can train."""

    event: Literal["ready"] = "ready"
    pid: int
    versions: dict[str, str] = {}
    """Package to version."""
    replicas: int = 1
    """Replicas that the framework counts over all ranks."""
    threads: int = 0
    devices: tuple[str, ...] = ()


class Step(_Event):
    """A training step ended. Step numbers count from 1 over the whole training and never repeat after a resume."""

    event: Literal["step"] = "step"
    step: int
    epoch: int
    metrics: dict[str, float] = {}
    """Values of this step's global batch (names without prefix, such as `loss`)."""


class Epoch(_Event):
    """An epoch ended; `step` is the last step in it, `epoch` counts from 1."""

    event: Literal["epoch"] = "epoch"
    epoch: int
    epochs: int
    step: int
    metrics: dict[str, float]
    """Means over the epoch; those of held-out rows begin with `val_`."""
    seconds: float


class Measured(_Event):
    """What was measured of the gang at work, not of the model: times, memory."""

    event: Literal["measured"] = "measured"
    step: int
    metrics: dict[str, float]


class Checkpoint(_Event):
    """A complete checkpoint was written."""

    event: Literal["checkpoint"] = "checkpoint"
    step: int
    path: str


class Heartbeat(_Event):
    """The rank is alive and makes progress outside of steps (loading, validating, saving)."""

    event: Literal["heartbeat"] = "heartbeat"
    doing: str = ""


class Model(_Event):
    """A model folder in MLflow's format was saved."""

    event: Literal["model"] = "model"
    path: str


class Result(_Event):
    """The task of this process is done; `values` is small JSON for whoever comes next."""

    event: Literal["result"] = "result"
    values: dict[str, Any]


class Done(_Event):
    """The task of this process returned: from now on exit code 0 is a success, and not before."""

    event: Literal["done"] = "done"


class Failure(_Event):
    """The rank is about to end with a failure that it can explain."""

    event: Literal["failure"] = "failure"
    error: str
    """Class of the exception: bare for our own and Python's, with its module for all others."""
    message: str
    traceback: str = ""
    step: int | None = None
    exit_code: int
    """What the rank will exit with: see `training.errors`."""


Event = Ready | Step | Epoch | Measured | Checkpoint | Heartbeat | Model | Result | Done | Failure
_adapter: TypeAdapter[Event] = TypeAdapter(Annotated[Event, Field(discriminator="event")])


def render_event(event: Event) -> str:
    """Return the line that carries `event`, with its separator and line feed."""
    return f"{RECORD_SEPARATOR}{json.dumps(event.model_dump(mode='json'), separators=(',', ':'))}\n"


def parse_line(line: str) -> tuple[str, Event | None]:
    r"""Split a line of a rank's output into ordinary text and the event that it carries, if any.

    A line that looks like an event but is none (half a line of a killed rank) is ordinary text.

    >>> parse_line("loss 0.3")
    ('loss 0.3', None)
    >>> parse_line('\x1e{"event":"heartbeat","rank":1,"time":0}')
    ('', Heartbeat(rank=1, time=0.0, event='heartbeat', doing=''))
    """
    text, separator, payload = line.partition(RECORD_SEPARATOR)
    if not separator:
        return line, None
    try:
        return text, _adapter.validate_json(payload)
    except ValidationError:
        return text + payload, None
