"""When each stage of a pipeline works on what: simulated from costs, or measured. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from training.plan.schedules import StageOrder, Work, bubble_of, list_needs, unroll


@dataclass(frozen=True, slots=True)
class Span:
    """One work with its time, in seconds since the step began."""

    work: Work
    begin_s: float
    end_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """One step of a pipeline.

    Attributes:
        stages: Number of stages.
        spans: All works with their times.
        step_s: Duration of the step.
    """

    stages: int
    spans: tuple[Span, ...]
    step_s: float

    def busy_s(self, stage: int) -> float:
        """Return how long a stage worked."""
        return sum(span.end_s - span.begin_s for span in self.spans if span.work.stage == stage)

    def idle_s(self, stage: int) -> float:
        """Return how long a stage stood idle."""
        return self.step_s - self.busy_s(stage)

    @property
    def bubble(self) -> float:
        """Share of the time of all stages in which they stood idle."""
        if self.step_s <= 0:
            return 0.0
        return 1 - sum(map(self.busy_s, range(self.stages))) / (self.stages * self.step_s)


def simulate(
    orders: Sequence[StageOrder],
    forward_s: Sequence[float],
    backward_s: Sequence[float],
) -> Timeline:
    """Return what a step would look like.

    Args:
        orders: What each stage does, in its order.
        forward_s: Seconds of a forward, for each stage.
        backward_s: Seconds of a backward, for each stage.

    >>> from training.plan.schedules import order_stages
    >>> simulate(order_stages("1f1b", 2, 3), [1, 1], [2, 2]).step_s
    12.0
    """
    ends: dict[Work, float] = {}
    free = [0.0] * len(orders)
    spans = []
    for work in unroll(orders):
        begin = max([free[work.stage], *(ends[need] for need in list_needs(work, len(orders)))])
        costs = forward_s if work.phase == "forward" else backward_s
        end = ends[work] = free[work.stage] = float(begin + costs[work.stage])
        spans.append(Span(work, begin, end))
    return Timeline(stages=len(orders), spans=tuple(spans), step_s=max(free))


def from_marks(marks: Sequence[tuple[Work, float, float]], stages: int) -> Timeline:
    """Return a measured step: `marks` are works with the times, on one clock, at which they began and ended."""
    first = min(begin for _, begin, _ in marks)
    spans = tuple(Span(work, begin - first, end - first) for work, begin, end in marks)
    return Timeline(stages=stages, spans=spans, step_s=max(span.end_s for span in spans))


def measure_pipeline(
    step_s: float, timeline: Timeline, micro_batches: int, peaks_mib: Sequence[float]
) -> dict[str, float]:
    """Return the metrics of a pipeline, by name.

    Args:
        step_s: How long the chief waited for the step, update included.
        timeline: The step.
        micro_batches: Number of micro-batches.
        peaks_mib: Largest memory of each stage so far.
    """
    metrics = {
        "pipeline/step_s": step_s,
        "pipeline/bubble": timeline.bubble,
        "pipeline/bubble_if_equal": bubble_of(timeline.stages, micro_batches),
    }
    for stage, peak_mib in enumerate(peaks_mib):
        metrics |= {
            f"pipeline/stage_{stage}_busy_s": timeline.busy_s(stage),
            f"pipeline/stage_{stage}_idle_s": timeline.idle_s(stage),
            f"pipeline/stage_{stage}_peak_mib": peak_mib,
        }
    return metrics


def describe_pipeline(step_s: float, timeline: Timeline, micro_batches: int, peaks_mib: Sequence[float]) -> str:
    """Return what `measure_pipeline` tells as a line for the log.

    >>> from training.plan.schedules import order_stages
    >>> step = simulate(order_stages("gpipe", 2, 1), [0.001] * 2, [0.002] * 2)
    >>> head, *stages = describe_pipeline(0.02, step, 1, [90, 90.4]).split("; ")
    >>> head, stages[0]
    ('a step of 20.0 ms, 50% idle (equal stages: 50%)', 'stage 0 busy for 3.0 of 6.0 ms, at most 90 MiB')
    """
    equal = bubble_of(timeline.stages, micro_batches)
    stages = (
        f"stage {stage} busy for {1000 * timeline.busy_s(stage):.1f} of {1000 * timeline.step_s:.1f} ms, "
        f"at most {peak_mib:.0f} MiB"
        for stage, peak_mib in enumerate(peaks_mib)
    )
    step = f"a step of {1000 * step_s:.1f} ms, {100 * timeline.bubble:.0f}% idle (equal stages: {100 * equal:.0f}%)"
    return "; ".join([step, *stages])
