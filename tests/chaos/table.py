"""The table of what came of the faults, and the figures. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from tests.chaos.fault import OF_A_RANK
from tests.chaos.play import Outcome

#: What a kill may take, by the contract.
NOTICED_LIMIT_S, GONE_LIMIT_S = 2.0, 10.0
_HEADER = (
    "#",
    "fault",
    "rank",
    "when",
    "ended",
    "attempts",
    "noticed, s",
    "gang gone, s",
    "weights",
    "took, s",
    "holds",
)


def render_table(outcomes: Sequence[Outcome]) -> str:
    """Return the rows as a Markdown table, the problems below it."""
    rows = [_HEADER, tuple("---" for _ in _HEADER), *(_render_row(outcome) for outcome in outcomes)]
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    problems = [f"- {outcome.fault.number}: {problem}" for outcome in outcomes for problem in outcome.problems]
    return "\n".join([table, "", *problems]).rstrip()


def render_summary(outcomes: Sequence[Outcome]) -> str:
    """Return the counts and the figures in lines."""
    played = [outcome for outcome in outcomes if not outcome.left_out]
    failed = sum(bool(outcome.problems) for outcome in played)
    differences = [outcome.difference for outcome in played if outcome.difference is not None]
    lines = [
        f"{len(played)} faults: {len(played) - failed} trainings ended as their policy says, {failed} did not; "
        f"{len(outcomes) - len(played)} faults were left out",
        f"weights: {len(differences)} trainings succeeded, largest difference to the undisturbed run "
        f"{max(differences, default=0.0):.2g}",
        _render_figure("killed rank noticed", noticed_times(outcomes), NOTICED_LIMIT_S),
        _render_figure("gang gone after a kill", gone_times(outcomes), GONE_LIMIT_S),
    ]
    return "\n".join(lines)


def noticed_times(outcomes: Sequence[Outcome]) -> list[float]:
    """Return the seconds until each killed rank was noticed."""
    return [t.noticed_s for outcome in outcomes for t in outcome.timings if t.noticed_s is not None]


def gone_times(outcomes: Sequence[Outcome]) -> list[float]:
    """Return the seconds until each gang was gone of which a rank, or the supervisor, was killed."""
    return [t.gone_s for outcome in outcomes for t in outcome.timings if t.gone_s is not None]


def find_broken_limits(outcomes: Sequence[Outcome]) -> list[str]:
    """Return the figures that break the contract, a kill that was never noticed among them."""
    late = [t for t in noticed_times(outcomes) if t >= NOTICED_LIMIT_S]
    slow = [t for t in gone_times(outcomes) if t >= GONE_LIMIT_S]
    unmeasured = [outcome.fault.number for outcome in outcomes if any(t.gone_s is None for t in outcome.timings)]
    return [
        *([f"a killed rank must be noticed in {NOTICED_LIMIT_S:g} s. Received: {late}"] if late else []),
        *([f"a gang must be gone in {GONE_LIMIT_S:g} s. Received: {slow}"] if slow else []),
        *([f"a gang was not seen to end, in {unmeasured}"] if unmeasured else []),
    ]


def _render_figure(name: str, times: Sequence[float], limit_s: float) -> str:
    if not times:
        return f"{name}: no kill was measured"
    median = statistics.median(times)
    return (
        f"{name}: median {median:.2f} s, longest {max(times):.2f} s of {len(times)} kills (must be under {limit_s:g} s)"
    )


def _render_row(outcome: Outcome) -> tuple[str, ...]:
    fault = outcome.fault
    when = f"{fault.moment}; {fault.second}" if fault.second else str(fault.moment)
    return (
        str(fault.number),
        str(fault.kind),
        str(fault.rank) if fault.kind in OF_A_RANK else "",
        when,
        ", then ".join(outcome.ended),
        str(outcome.attempts),
        _join([timing.noticed_s for timing in outcome.timings]),
        _join([timing.gone_s for timing in outcome.timings]),
        "" if outcome.difference is None else f"{outcome.difference:.1g}",
        f"{outcome.seconds:.0f}",
        outcome.left_out or ("NO" if outcome.problems else "yes"),
    )


def _join(times: Sequence[float | None]) -> str:
    return ", ".join("-" if seconds is None else f"{seconds:.2f}" for seconds in times)
