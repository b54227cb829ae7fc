"""The stages of a pipeline as lines of text, for `ganger plan` and for the log of a training. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from training.plan.partition import LayerFacts, choose_partition, find_cuts
from training.plan.pipeline_prediction import PipelinePrediction, predict_pipeline
from training.plan.schedules import split_rows
from training.spec.stages import StagesSpec

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def render_split(
    layers: Sequence[LayerFacts], partition: Sequence[int], wanted: StagesSpec, batch_size: int
) -> list[str]:
    """Return what there is to say of a model in stages before they work."""
    prediction = predict_pipeline(
        layers, partition, schedule=wanted.schedule, micro_batches=wanted.micro_batches, batch_size=batch_size
    )
    return [
        f"{_describe_work(wanted, len(partition), batch_size)}: {render_step(prediction)}",
        *render_stages(prediction),
    ]


def render_moving(layers: Sequence[str]) -> list[str]:
    """Return what is to be said of `layers` whose state goes on with each micro-batch; nothing where there are none."""
    return [f"{', '.join(layers)}: by micro-batches, so that weights are others than without stages"] if layers else []


def render_other_counts(layers: Sequence[LayerFacts], stages: int, wanted: StagesSpec, batch_size: int) -> list[str]:
    """Return a line for each other number of stages that the model and the micro-batches allow, up to twice as many."""
    most = min(len(find_cuts(layers)) + 1, wanted.micro_batches, 2 * stages)
    lines = []
    for count in (each for each in range(2, most + 1) if each != stages):
        partition = choose_partition(layers, count)
        prediction = predict_pipeline(
            layers, partition, schedule=wanted.schedule, micro_batches=wanted.micro_batches, batch_size=batch_size
        )
        held = max(stage.activation_bytes for stage in prediction.stages)
        sent = sum(stage.sent_bytes for stage in prediction.stages)
        lines.append(
            f"{count} stages would take {prediction.relative_step:.2f} of it, {100 * prediction.bubble:.0f}% idle, "
            f"hold {render_bytes(held)} of activations at most and send {render_bytes(sent)} a step"
        )
    return lines


def render_equal_stages(stages: int, wanted: StagesSpec, batch_size: int, unknown: str = "") -> list[str]:
    """Return what can be said of stages whose model nobody has looked at: as if they cost the same.

    Args:
        stages: Number of stages.
        wanted: What the spec says of them.
        batch_size: Rows of a step.
        unknown: Why nobody has, in words.
    """
    layers = [LayerFacts(name=f"stage {index}", inputs=(index - 1,), cost=1.0) for index in range(stages)]
    prediction = predict_pipeline(
        layers, (1,) * stages, schedule=wanted.schedule, micro_batches=wanted.micro_batches, batch_size=batch_size
    )
    held = ", ".join(str(stage.in_flight) for stage in prediction.stages)
    return [
        _describe_work(wanted, stages, batch_size),
        f"if they cost the same, {render_step(prediction)}; they hold {held} micro-batches at most",
        *filter(None, [unknown]),
    ]


def _describe_work(wanted: StagesSpec, stages: int, batch_size: int) -> str:
    rows = split_rows(batch_size, wanted.micro_batches)
    each = f"{rows[0]}" if rows[0] == rows[-1] else f"{rows[-1]} or {rows[0]}"
    return f"{stages} stages, {wanted.schedule}, {wanted.micro_batches} micro-batches of {each} rows"


def render_stages(prediction: PipelinePrediction) -> list[str]:
    """Return a line for each stage: its layers, and what they are and do."""
    cells = [
        (
            f"stage {index}",
            stage.layers[0] if stage.layers[0] == stage.layers[1] else f"{stage.layers[0]} ... {stage.layers[1]}",
            f"{stage.layer_count} {'layer' if stage.layer_count == 1 else 'layers'}",
            f"{stage.parameters} parameters",
            f"{100 * stage.cost_share:.0f}% of the cost",
            f"{render_bytes(stage.activation_bytes)} of activations",
            f"sends {render_bytes(stage.sent_bytes)} a step",
        )
        for index, stage in enumerate(prediction.stages)
    ]
    return [text.rstrip() for text in _align(cells)]


def render_step(prediction: PipelinePrediction) -> str:
    """Return the duration of a step and the bubble in words."""
    return (
        f"a step takes {prediction.relative_step:.2f} of the time of one process with the threads of one stage, "
        f"{100 * prediction.bubble:.0f}% idle"
    )


def render_bytes(count: int) -> str:
    """Return a number of bytes in the unit that leaves at most three digits before the point.

    >>> render_bytes(0), render_bytes(1500), render_bytes(5 * 2**20)
    ('0 B', '1.5 KiB', '5 MiB')
    """
    size, unit = float(count), 0
    while size >= 1000 and unit < len(_UNITS) - 1:
        size, unit = size / 1024, unit + 1
    return f"{ceil(size) if size >= 100 else round(size, 1):g} {_UNITS[unit]}"


def _align(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
