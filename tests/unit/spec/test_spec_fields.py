"""Walking the models: pydantic's own names are left out of paths; keys of another variant are told apart."""

from typing import Annotated, Literal

import pytest
from pydantic import Field

from training.spec.base import SpecModel
from training.spec.fields import find_tag, locate
from training.spec.pipeline import Bound, PipelineSpec
from training.spec.problems import find_mistakes
from training.spec.train import MXNetTrain, TensorFlowTrain


@pytest.mark.parametrize(
    ("loc", "path", "owner"),
    [
        (("train", "tensorflow", "strategy"), ("train", "strategy"), TensorFlowTrain),
        (("train", "mxnet", "mxnet"), ("train", "mxnet"), MXNetTrain),
        (("train",), ("train",), PipelineSpec),
        (("evaluate", "require", "block", "block", "min"), ("evaluate", "require", "block", "min"), Bound),
        (("evaluate", "require", "loss", "number"), ("evaluate", "require", "loss"), None),
        (("schedule", "block", "assets", 0), ("schedule", "assets", 0), None),
        (("data", "params", "x", "[key]"), ("data", "params", "x"), None),
        (("[key]",), ("[key]",), PipelineSpec),
        (("data", "params", "[key]"), ("data", "params", "[key]"), None),
        (("registration",), ("registration",), PipelineSpec),
    ],
)
def test_places_are_told_in_yaml_names(loc, path, owner):
    found = locate(PipelineSpec, loc)

    assert (found.path, found.owner) == (path, owner)


def test_a_model_is_chosen_by_its_required_word():
    assert find_tag(MXNetTrain) == ("engine", "mxnet")
    assert find_tag(Bound) is None


class Cat(SpecModel):
    """A block with a key of its own."""

    kind: Literal["cat"]
    lives: int = 9


class Dog(SpecModel):
    """Another."""

    kind: Literal["dog"]


class Owner(SpecModel):
    """Has one of the two."""

    pet: Annotated[Cat | Dog, Field(discriminator="kind")]


def test_a_key_of_another_variant_is_told_from_an_unknown_one():
    (mistake,) = find_mistakes({"pet": {"kind": "dog", "lives": 7}}, Owner)

    assert mistake.path == ("pet", "lives")
    assert (mistake.message, mistake.remedy) == ("is not a known key here.", "It belongs to kind: cat.")
