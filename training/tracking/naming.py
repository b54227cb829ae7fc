"""What an event becomes in MLflow: names of metrics and tags, one meaning each. Pure; imports no MLflow.

| name                | step axis                                | value                                              |
|---------------------|------------------------------------------|----------------------------------------------------|
| `step/loss`, …      | global step                              | of that step's global batch                        |
| `loss`, `val_loss`… | global step at which the epoch ended     | mean over the epoch; `val_` of held-out rows       |
| `epoch`             | the same                                 | number of the epoch that ended, from 1             |
| `epoch_seconds`     | the same                                 | duration of the epoch                              |
| `pipeline/bubble`, …| the same                                 | measured of the gang: times, memory                |
| `eval_accuracy`, …  | last step of the training                | of the final model, by the task `evaluate`         |

Only rank 0 counts: the engines give global values, so what the other ranks say is the same again.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from training.run.event import Epoch, Event, Measured, Model, Ready, Result, Step

#: MLflow's own limits (mlflow/utils/validation.py, 3.17).
MAX_KEY_LENGTH = 250
MAX_PARAM_LENGTH = 6000
MAX_TAG_LENGTH = 8000

TAG_RUN_ID = "ganger.run_id"
TAG_FAILURE = "ganger.failure"
TAG_PREVIOUS_RUN = "ganger.previous_mlflow_run"
TAG_RETRIED_PARAM = "ganger.retried_param."
TAG_VERSION = "ganger.version."

Series = Literal["step", "epoch", "gang"]

_INVALID = re.compile(r"[^\w.\- :/]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Points:
    """Metrics of one moment.

    Attributes:
        series: Whose step axis the points are on; a series never goes back. `evaluation` has one moment only.
        step: Global step; None where only the store knows it.
        time_ms: When it happened, in milliseconds since the epoch.
        values: MLflow metric name to value.
    """

    series: Series | Literal["evaluation"]
    step: int | None
    time_ms: int
    values: dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class TagChange:
    """Tags to set."""

    tags: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedModel:
    """A model folder that is to be logged when the training has succeeded."""

    path: str


def changes_of(event: Event, *, job: str) -> Points | TagChange | SavedModel | None:
    """Return what `event` changes in the MLflow run, or None.

    Args:
        event: From any rank.
        job: Name of the job; only the result of `evaluate` holds metrics.
    """
    if event.rank != 0:
        return None
    match event:
        case Step():
            return _points("step", event.step, event.time, {f"step/{k}": v for k, v in event.metrics.items()})
        case Epoch():
            extra = {"epoch": float(event.epoch), "epoch_seconds": event.seconds}
            return _points("epoch", event.step, event.time, dict(event.metrics) | extra)
        case Measured():
            return _points("gang", event.step, event.time, event.metrics)
        case Ready() if job != "evaluate":  # whose one process says nothing of how the training ran
            return TagChange(tags=_ready_tags(event))
        case Model():
            return SavedModel(path=event.path)
        case Result() if job == "evaluate":
            return _evaluation_points(event)
        case _:
            return None


def _points(series: Series, step: int, time_s: float, values: Mapping[str, float]) -> Points | None:
    if not values:
        return None
    named = {valid_key(name): float(value) for name, value in values.items()}
    return Points(series=series, step=step, time_ms=round(time_s * 1000), values=named)


def _ready_tags(event: Ready) -> dict[str, str]:
    tags = {TAG_VERSION + package: version for package, version in event.versions.items()}
    tags["ganger.replicas"] = str(event.replicas)
    if event.devices:
        tags["ganger.devices"] = ", ".join(event.devices)
    return {valid_key(name): shorten(value, MAX_TAG_LENGTH) for name, value in tags.items()}


def _evaluation_points(event: Result) -> Points | None:
    values = evaluation_metrics(event.values.get("metrics"))
    step = event.values.get("step")
    known_step = step if isinstance(step, int) and not isinstance(step, bool) else None
    if not values:
        return None
    return Points(series="evaluation", step=known_step, time_ms=round(event.time * 1000), values=values)


def evaluation_metrics(metrics: Any) -> dict[str, float]:
    """Return the metrics of an evaluation under their MLflow names; what is not a number is left out.

    >>> evaluation_metrics({"accuracy": 0.95, "val_loss": 0.2, "note": "x"})
    {'eval_accuracy': 0.95, 'eval_loss': 0.2}
    """
    if not isinstance(metrics, Mapping):
        return {}
    numbers = {str(k): v for k, v in metrics.items() if isinstance(v, int | float) and not isinstance(v, bool)}
    return {valid_key(f"eval_{name.removeprefix('val_')}"): float(value) for name, value in numbers.items()}


def valid_key(name: str) -> str:
    """Return `name` as MLflow takes it for params, metrics and tags; a changed one ends in a digest: none collide.

    >>> valid_key("val_loss"), valid_key("loss@1")
    ('val_loss', 'loss_1_8cf9c5')
    """
    parts = [part for part in _INVALID.sub("_", name).split("/") if part not in ("", ".", "..")]
    clean = "/".join(parts)
    if clean == name and len(name) <= MAX_KEY_LENGTH:
        return name
    digest = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:6]
    return f"{clean[: MAX_KEY_LENGTH - 7]}_{digest}"


def shorten(value: str, limit: int, where: str = "") -> str:
    """Return `value` in at most `limit` characters; a shortened one says so and holds a digest of the whole.

    Args:
        value: Any text.
        limit: In characters.
        where: Where the whole text is, for the reader.
    """
    if len(value) <= limit:
        return value
    digest = hashlib.sha256(value.encode(errors="surrogatepass")).hexdigest()[:12]
    place = f"; all of it: {where}" if where else ""
    ending = f" … [shortened from {len(value)} characters, sha256 {digest}{place}]"
    return value[: limit - len(ending)] + ending
