"""Which layers of a model make up which stage of a pipeline. Pure: the model is given as names, edges and costs.

A model can be cut behind a layer where nothing but that layer's output is needed behind the cut. What lies between two
such places, a residual block for example, stays whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from training.errors import spec_error

_FIELD = "train.pipeline.partition"


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerFacts:
    """One layer, in the order in which layers compute.

    Attributes:
        name: What the model calls it.
        inputs: Numbers of the layers whose outputs it takes; -1 is the input of the model.
        parameters: Numbers in its weights.
        output_numbers: Numbers in its output, for one row.
        cost: Multiplications and additions of a forward for one row, or any other measure.
    """

    name: str
    inputs: tuple[int, ...]
    parameters: int = 0
    output_numbers: int = 0
    cost: float = 0.0


def find_cuts(layers: Sequence[LayerFacts]) -> tuple[int, ...]:
    """Return how many layers may lie before a cut, in ascending order, without 0 and all.

    >>> chain = [LayerFacts(name=name, inputs=(number - 1,)) for number, name in enumerate("abc")]
    >>> find_cuts(chain), find_cuts([*chain, LayerFacts(name="add", inputs=(0, 2))])
    ((1, 2), (1,))
    """
    return tuple(cut for cut in range(1, len(layers)) if _find_crossing(layers, cut) is None)


def _find_crossing(layers: Sequence[LayerFacts], cut: int) -> int | None:
    """Return the first layer behind `cut` that takes more than the output of the layer just before it."""
    return next(
        (index for index in range(cut, len(layers)) if any(i < cut and i != cut - 1 for i in layers[index].inputs)),
        None,
    )


def choose_partition(layers: Sequence[LayerFacts], stages: int, wanted: Sequence[int] | None = None) -> tuple[int, ...]:
    """Return the number of layers of each stage.

    Args:
        layers: The model.
        stages: Number of stages.
        wanted: Number of layers of each stage, as the spec says it; None to balance the costs.

    Raises:
        SpecError: The model has too few places to be cut at, or `wanted` is none of them.
    """
    cuts = find_cuts(layers)
    if len(cuts) + 1 < stages:
        raise spec_error("train.pipeline.stages", *_explain_too_few(layers, cuts, stages))
    if wanted is None:
        return balance(layers, cuts, stages)
    _check_wanted(layers, wanted)
    return tuple(wanted)


def balance(layers: Sequence[LayerFacts], cuts: Sequence[int], stages: int) -> tuple[int, ...]:
    """Return the contiguous partition whose dearest stage costs least; of several, the one with the evenest costs."""
    borders = (0, *cuts, len(layers))
    sums = [0.0, *accumulate(layer.cost for layer in layers)]
    #: Border to the best way to it: cost of its dearest stage, sum of the squared costs, the borders on the way.
    best: dict[int, tuple[float, float, tuple[int, ...]]] = {0: (0.0, 0.0, (0,))}
    for _ in range(stages):
        reached: dict[int, tuple[float, float, tuple[int, ...]]] = {}
        for start, (dearest, squares, way) in best.items():
            for end in (border for border in borders if border > start):
                cost = sums[end] - sums[start]
                found = (max(dearest, cost), squares + cost**2, (*way, end))
                reached[end] = min(reached.get(end, found), found)
        best = reached
    way = best[len(layers)][2]
    return tuple(after - before for before, after in pairwise(way))


def list_ranges(partition: Sequence[int]) -> list[range]:
    """Return the numbers of the layers of each stage.

    >>> list_ranges([2, 3])
    [range(0, 2), range(2, 5)]
    """
    return [range(start, end) for start, end in pairwise([0, *accumulate(partition)])]


def _check_wanted(layers: Sequence[LayerFacts], wanted: Sequence[int]) -> None:
    if sum(wanted) != len(layers):
        names = ", ".join(layer.name for layer in layers)
        raise spec_error(
            _FIELD,
            f"must add up to the {len(layers)} layers of the model. Received: {list(wanted)}, which is {sum(wanted)}.",
            f"The layers are: {names}.",
        )
    for cut in list(accumulate(wanted))[:-1]:
        blocked = _find_crossing(layers, cut)
        if blocked is not None:
            raise spec_error(
                _FIELD,
                f"must cut the model where one tensor alone goes on. Received: {list(wanted)}, which cuts behind "
                f"{layers[cut - 1].name}, though {layers[blocked].name} also takes what comes from before it.",
                f"It can be cut behind: {_name_cuts(layers, find_cuts(layers))}.",
            )


def _explain_too_few(layers: Sequence[LayerFacts], cuts: Sequence[int], stages: int) -> tuple[str, str]:
    message = f"must be at most {len(cuts) + 1}, since the model can be cut "
    message += f"behind {_name_cuts(layers, cuts)} only" if cuts else "nowhere"
    borders = set(cuts)
    inner = next((cut for cut in range(1, len(layers)) if cut not in borders), None)
    if inner is not None:
        blocked = _find_crossing(layers, inner)
        assert blocked is not None
        message += f": {layers[blocked].name} takes more than the output of {layers[inner - 1].name}"
    return f"{message}. Received: {stages}.", "Use fewer stages, or a model with more layers in a row."


def _name_cuts(layers: Sequence[LayerFacts], cuts: Sequence[int]) -> str:
    return ", ".join(layers[cut - 1].name for cut in cuts) or "nothing"
