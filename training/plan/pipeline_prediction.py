"""What a pipeline will take: time, bubble, memory of activations, traffic. Pure; printed before anything starts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from training.plan.partition import LayerFacts, list_ranges
from training.plan.schedules import Schedule, count_in_flight, order_stages, split_rows
from training.plan.timeline import simulate

#: A backward computes a gradient for what it was given, and one for its weights: twice a forward.
BACKWARD_FACTOR = 2.0
#: Of activations and gradients, in float32.
_BYTES_PER_NUMBER = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class StagePrediction:
    """One stage.

    Attributes:
        layers: Names of its first and its last layer.
        layer_count: Number of its layers.
        parameters: Numbers in its weights.
        cost_share: Its part of the cost of the whole model.
        in_flight: Micro-batches whose activations it holds at most.
        activation_bytes: What those take, for layers that keep their output.
        sent_bytes: What it sends on in a step, activations and gradients.
    """

    layers: tuple[str, str]
    layer_count: int
    parameters: int
    cost_share: float
    in_flight: int
    activation_bytes: int
    sent_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelinePrediction:
    """A step of a pipeline.

    Attributes:
        relative_step: Duration of a step, where one process on the same threads as one stage takes 1.
        bubble: Share of the time in which stages stand idle.
        stages: Each stage.
    """

    relative_step: float
    bubble: float
    stages: tuple[StagePrediction, ...]


def predict_pipeline(
    layers: Sequence[LayerFacts],
    partition: Sequence[int],
    *,
    schedule: Schedule,
    micro_batches: int,
    batch_size: int,
) -> PipelinePrediction:
    """Return what a step of the model that is split so will take."""
    ranges = list_ranges(partition)
    orders = order_stages(schedule, len(ranges), micro_batches)
    total = sum(layer.cost for layer in layers) or 1.0
    shares = [sum(layers[index].cost for index in numbers) / total for numbers in ranges]
    unit = 1 / (1 + BACKWARD_FACTOR) / micro_batches
    timeline = simulate(
        orders, [share * unit for share in shares], [share * unit * BACKWARD_FACTOR for share in shares]
    )
    largest = split_rows(batch_size, micro_batches)[0]
    stages = []
    for stage, numbers in enumerate(ranges):
        own = [layers[index] for index in numbers]
        in_flight = count_in_flight(orders[stage])
        kept = sum(layer.output_numbers for layer in own) + (layers[numbers.start - 1].output_numbers if stage else 0)
        forward = own[-1].output_numbers if stage < len(ranges) - 1 else 0
        backward = layers[numbers.start - 1].output_numbers if stage else 0
        stages.append(
            StagePrediction(
                layers=(own[0].name, own[-1].name),
                layer_count=len(own),
                parameters=sum(layer.parameters for layer in own),
                cost_share=shares[stage],
                in_flight=in_flight,
                activation_bytes=in_flight * largest * kept * _BYTES_PER_NUMBER,
                sent_bytes=(forward + backward) * batch_size * _BYTES_PER_NUMBER,
            )
        )
    return PipelinePrediction(relative_step=timeline.step_s, bubble=timeline.bubble, stages=tuple(stages))
