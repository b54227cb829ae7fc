"""A timeline of a pipeline as a picture: one row a stage, one box a work, numbered by its micro-batch. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from training.plan.timeline import Span, Timeline

_WIDTH, _ROW, _LEFT, _TOP, _FOOT = 960, 36, 70, 34, 26
_COLOURS = {"forward": "#7fb2d9", "backward": "#f0b47c"}
_NARROWEST_TEXT = 12


def draw_timeline(timeline: Timeline, title: str) -> str:
    """Return the picture as SVG; what is empty in a row is the bubble."""
    height = _TOP + _ROW * timeline.stages + _FOOT
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LEFT + _WIDTH + 10}" height="{height}" '
            'font-family="sans-serif" font-size="12">',
            f'<rect width="100%" height="100%" fill="#ffffff"/><text x="{_LEFT}" y="20">{escape(title)}</text>',
            *_draw_rows(timeline),
            *(_draw_span(span, timeline.step_s) for span in timeline.spans),
            *_draw_axis(timeline, height),
            "</svg>\n",
        ]
    )


def _draw_rows(timeline: Timeline) -> Iterator[str]:
    for stage in range(timeline.stages):
        y = _TOP + _ROW * stage
        yield f'<text x="8" y="{y + 20}">stage {stage}</text>'
        yield f'<rect x="{_LEFT}" y="{y}" width="{_WIDTH}" height="{_ROW - 6}" fill="#eeeeee"/>'


def _draw_span(span: Span, step_s: float) -> str:
    scale = _WIDTH / step_s if step_s else 0.0
    x, width = _LEFT + span.begin_s * scale, (span.end_s - span.begin_s) * scale
    y = _TOP + _ROW * span.work.stage
    what = f"{span.work.phase} of micro-batch {span.work.micro_batch}: {1000 * (span.end_s - span.begin_s):.1f} ms"
    box = (
        f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{_ROW - 6}" '
        f'fill="{_COLOURS[span.work.phase]}" stroke="#ffffff" stroke-width="0.5"><title>{what}</title></rect>'
    )
    if width < _NARROWEST_TEXT:
        return box
    return f'{box}<text x="{x + width / 2:.1f}" y="{y + 20}" text-anchor="middle">{span.work.micro_batch}</text>'


def _draw_axis(timeline: Timeline, height: int) -> Iterator[str]:
    yield f'<text x="{_LEFT}" y="{height - 8}">0</text>'
    yield (
        f'<text x="{_LEFT + _WIDTH}" y="{height - 8}" text-anchor="end">{1000 * timeline.step_s:.1f} ms, '
        f"{100 * timeline.bubble:.0f}% idle; blue: forward, orange: backward</text>"
    )
