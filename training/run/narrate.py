"""Events as lines that a person reads in a log."""

from __future__ import annotations

from collections.abc import Mapping

from training.run.event import Checkpoint, Epoch, Event, Heartbeat, Model, Ready


def narrate(event: Event) -> str | None:
    """Return the line that tells of `event`, or None.

    Steps are too many to be read; a failure is told by the rank itself, and by the supervisor's headline; who measures
    a gang says in its own words what it found.
    """
    match event:
        case Ready():
            return _narrate_ready(event)
        case Epoch():
            metrics = render_metrics(event.metrics)
            return f"epoch {event.epoch}/{event.epochs}  step {event.step}  {metrics}  {event.seconds:.1f} s"
        case Checkpoint():
            return f"checkpoint of step {event.step}: {event.path}"
        case Model():
            return f"model saved: {event.path}"
        case Heartbeat() if event.doing:
            return event.doing
        case _:
            return None


def render_metrics(metrics: Mapping[str, float]) -> str:
    """Return metrics as `name value` pairs.

    >>> render_metrics({"loss": 0.41234, "accuracy": 0.88})
    'loss 0.4123  accuracy 0.88'
    """
    return "  ".join(f"{name} {value:.4g}" for name, value in metrics.items())


def _narrate_ready(event: Ready) -> str:
    facts = [
        f"{event.threads} thread{'s' if event.threads != 1 else ''}" if event.threads else "",
        ", ".join(event.devices),
        f"{event.replicas} replicas" if event.replicas > 1 else "",
        ", ".join(f"{name} {version}" for name, version in event.versions.items()),
    ]
    told = "  ".join(fact for fact in facts if fact)
    return f"ready  {told}" if told else "ready"
