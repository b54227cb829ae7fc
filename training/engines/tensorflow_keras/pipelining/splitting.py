"""A Keras model as layers in the order in which they compute, and as stages that are cut out of it.

A model is cut between layers only: operations that are no layers (`keras.ops`) count as layers of their own, a model
inside the model as one layer.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import keras
from keras.src.models.functional import operation_fn

from training.engines.tensorflow_keras.pipelining.layer_cost import estimate_cost
from training.engines.tensorflow_keras.pipelining.row_losses import is_mean
from training.engines.tensorflow_keras.pipelining.sharing import check_owners
from training.engines.tensorflow_keras.pipelining.splittable import (
    check_nodes,
    check_output,
    check_own_call,
    check_own_step,
    refuse,
)
from training.plan.partition import LayerFacts, choose_partition, list_ranges
from training.spec.stages import StagesSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A part of a model, which shares its layers.

    Attributes:
        layers: Its layers, in the order in which they compute.
        call: Takes the one tensor that the stage is given, returns the one that it hands on; as in training.
    """

    layers: tuple[Any, ...]
    call: Any

    @property
    def variables(self) -> list[keras.Variable]:
        """All its variables, each once; random states among them."""
        every = [variable for layer in self.layers for variable in getattr(layer, "variables", ())]
        return list({id(variable): variable for variable in every}.values())

    @property
    def trainable_variables(self) -> list[keras.Variable]:
        """Its variables that are trained."""
        every = [variable for layer in self.layers for variable in getattr(layer, "trainable_variables", ())]
        return list({id(variable): variable for variable in every}.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """How a model is split.

    Attributes:
        layers: All layers, in the order in which they compute.
        partition: Number of layers of each stage.
    """

    layers: tuple[LayerFacts, ...]
    partition: tuple[int, ...]


def split_model(model: Any, wanted: StagesSpec, stages: int) -> Split:
    """Return how a built, compiled `model` is to be split into `stages` stages.

    Raises:
        SpecError: It cannot be split and trained so.
    """
    check_own_step(model)
    layers = read_layers(model)
    is_mean(model)
    chosen = None if wanted.partition == "auto" else wanted.partition
    return Split(layers=tuple(layers), partition=choose_partition(layers, stages, chosen))


def read_layers(model: Any) -> list[LayerFacts]:
    """Return the layers of a built `model`.

    Raises:
        SpecError: It is no row of layers from one input to one output; says which layer prevents it.
    """
    nodes = _list_nodes(_find_graph(model))
    makers = {id(tensor): (number, len(node.outputs)) for number, node in enumerate(nodes) for tensor in node.outputs}
    facts = []
    for node in nodes:
        output = node.outputs[0]
        layer = node.operation
        facts.append(
            LayerFacts(
                name=layer.name,
                inputs=tuple(_list_makers(makers, node.input_tensors)),
                parameters=sum(math.prod(variable.shape) for variable in getattr(layer, "weights", ())),
                output_numbers=math.prod(size or 1 for size in output.shape[1:]),
                cost=estimate_cost(layer, node.input_tensors[0].shape, output.shape),
            )
        )
    return facts


def cut_stages(model: Any, partition: Sequence[int]) -> list[Stage]:
    """Return the stages of a built `model`, which `choose_partition` has found to be cut so.

    Raises:
        SpecError: A stage would hand on whole numbers, back through which no gradient comes, or two share a variable.
    """
    graph = _find_graph(model)
    nodes = _list_nodes(graph)
    stages = []
    for numbers in list_ranges(partition):
        check_output(nodes[numbers.stop - 1])
        given = nodes[numbers.start - 1].outputs[0] if numbers.start else graph.inputs[0]
        function = keras.Function(given, nodes[numbers.stop - 1].outputs[0])
        layers = tuple(nodes[number].operation for number in numbers)
        stages.append(Stage(layers=layers, call=StageLayer(function)))
    check_owners(stages)
    return stages


class StageLayer(keras.layers.Layer):
    """Has the layers of a function know, as inside of a model, that they are trained."""

    def __init__(self, function: Any) -> None:
        super().__init__(autocast=False)
        self._function = function
        self.built = True

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        """Run the function, as a functional model would: a layer's own default of `training` has no say.

        Not by calling it: the number of rows of the model that it is part of may be the one that it was built with.
        """
        return self._function._run_through_graph(
            (inputs,), operation_fn=lambda operation: operation_fn(operation, training=training)
        )


def _find_graph(model: Any) -> Any:
    graph = model._functional if isinstance(model, keras.Sequential) else model
    if not isinstance(graph, keras.Function):
        raise refuse(
            "must be a Sequential or functional model to be split into stages. "
            f"Received: {type(model).__name__}, whose order of layers is known to its own code only.",
            "Use another strategy, or build it with keras.Input and keras.Model.",
        )
    check_own_call(model)
    for name, tensors in (("input", graph.inputs), ("output", graph.outputs)):
        if len(tensors) != 1:
            names = ", ".join(tensor.name for tensor in tensors)
            raise refuse(f"must have one {name} to be split into stages. Received: {len(tensors)} ({names}).")
    return graph


def _list_nodes(graph: Any) -> list[Any]:
    depths = sorted(graph._nodes_by_depth, reverse=True)
    nodes = [node for depth in depths for node in graph._nodes_by_depth[depth] if not node.is_input]
    check_nodes(nodes)
    return nodes


def _list_makers(makers: dict[int, tuple[int, int]], tensors: Iterable[Any]) -> Iterable[int]:
    """Yield the numbers of the layers that made `tensors`, -1 for the input of the model."""
    for tensor in tensors:
        number, outputs = makers.get(id(tensor), (-1, 1))
        yield number
        if outputs > 1:  # several tensors cannot cross a cut: so the layer stays together with who takes them
            yield number - 1
