"""What a trained model must reach: metrics against `evaluate.require`."""

from __future__ import annotations

from collections.abc import Mapping

from training.errors import EvaluationError, Problem, SpecError
from training.names import say_nearest
from training.spec.pipeline import Bound


def check_bounds(metrics: Mapping[str, float], bounds: Mapping[str, Bound], rows: int) -> None:
    """Check metrics against bounds.

    Raises:
        SpecError: A bound is for a metric that was not computed.
        EvaluationError: A metric is out of its bounds; names all of them.
    """
    unknown = [
        Problem(
            field=f"evaluate.require.{name}",
            message=f"must be a metric of the model. Received: {name}.",
            remedy=say_nearest(name, metrics),
        )
        for name in bounds
        if name not in metrics
    ]
    if unknown:
        raise SpecError(unknown)
    # Written so that NaN is out of every bound.
    misses = [
        f"{name} must be at least {bound.min:g}. Received: {metrics[name]:.6g}"
        for name, bound in bounds.items()
        if bound.min is not None and not metrics[name] >= bound.min
    ]
    misses += [
        f"{name} must be at most {bound.max:g}. Received: {metrics[name]:.6g}"
        for name, bound in bounds.items()
        if bound.max is not None and not metrics[name] <= bound.max
    ]
    if misses:
        raise EvaluationError(f"{'; '.join(misses)}, on {rows} held-out rows.")
