"""`--set`: values beside the file, and errors that name the argument instead of a line."""

import pytest

from training.errors import SpecError
from training.spec.loader import load_pipeline, parse_overrides, pipeline_from_mapping

TEXT = """\
name: small
schedule: "@daily"
data: {source: digits}
model: {entrypoint: m.py, freeze: [a]}
train:
  engine: tensorflow
  epochs: x
"""


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "p.yaml"
    file.write_text(TEXT)
    return file


def complaints(call, *arguments, **keywords):
    with pytest.raises(SpecError) as caught:
        call(*arguments, **keywords)
    return [str(problem) for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("train.epochs=3", 3),
        ("train.epochs=", None),
        ("train.epochs=1e-3", 0.001),
        ("train.epochs='3'", "3"),
        ("train.epochs=[a, {b: 1}]", ["a", {"b": 1}]),
        ("train.epochs=a=b", "a=b"),
        (" train.epochs =3", 3),
    ],
)
def test_values_are_yaml(argument, value):
    assert parse_overrides([argument]) == {"train.epochs": value}


def test_the_last_of_equal_paths_counts():
    assert parse_overrides(["train.epochs=1", "train.seed=1", "train.epochs=2"]) == {"train.seed": 1, "train.epochs": 2}


def test_every_malformed_argument_is_told():
    said = complaints(parse_overrides, ["train.epochs", "=3", "a..b=1", "a=[1", "b=!!set {x}", "c.d={e: .nan}"])

    shape = "must be a dotted field, `=` and a value. Such as: --set train.epochs=3"
    assert said == [
        f"--set train.epochs: {shape}",
        f"--set =3: {shape}",
        f"--set a..b=1: {shape}",
        "--set a=[1: a: a list is opened with `[` here and not closed with `]`, or a `,` is missing in it. "
        "Close it, or put a `,` between its items.",
        "--set b=!!set {x}: b: must not have a tag. Received: `!!set`. "
        "Remove it, or put a text that begins with `!` in quotes.",
        "--set c.d={e: .nan}: c.d.e: must be a finite number. Received: .nan. Write a finite number, or null for none.",
    ]


def test_an_override_heals_a_wrong_file_and_makes_absent_blocks(path):
    overrides = parse_overrides(["train.epochs=3", "cluster.threads_per_worker=2", "register.model=m", "schedule=null"])

    spec = load_pipeline(path, overrides).spec

    assert (spec.train.epochs, spec.cluster.threads_per_worker, spec.schedule) == (3, 2, None)
    assert spec.registration.model == "m"


def test_mistakes_name_the_argument_after_those_of_the_file(path):
    arguments = ["train.seed=-1", "trian.epochs=3", "name.x=1", "model.freeze.b=1", "register.alias=champion"]

    said = complaints(load_pipeline, path, parse_overrides(arguments))

    assert said == [
        f"{path}:7: train.epochs: must be a whole number. Received: the text 'x'.",
        "--set name.x=1: name.x: cannot be set alone, since name is the text 'small'. Set the whole of name.",
        "--set model.freeze.b=1: model.freeze.b: cannot be set alone, since model.freeze is a list. "
        "Set the whole of model.freeze.",
        "--set train.seed=-1: train.seed: must be at least 0. Received: -1.",
        "--set register.alias=champion: register.model: is missing. Add `model:` (name of the registered model).",
        "--set trian.epochs=3: trian: is not a known key. Did you mean `train`?",
    ]


def test_a_whole_block_can_be_replaced(path):
    spec = load_pipeline(path, {"train": {"engine": "mxnet", "epochs": 2}}).spec

    assert (spec.train.engine, spec.train.epochs) == ("mxnet", 2)


def test_a_trigger_form_has_its_own_name(path):
    """K53: batch "32", -1, null, an extra key."""
    form = {"train.epochs": 1, "train.batch_size": "32", "train.restarts": -1, "cluster.workers": None, "train.more": 1}

    said = complaints(load_pipeline, path, form, origin="trigger form:")

    assert said[:2] == [
        "trigger form: train.batch_size=32: train.batch_size: must be a whole number. Received: the text '32'. "
        "Write it without quotes.",
        "trigger form: train.restarts=-1: train.restarts: must be at least 0. Received: -1.",
    ]
    assert len(said) == 4


def test_overriding_changes_neither_mapping_nor_overrides(tmp_path):
    mapping = {"name": "a", "data": {"source": "digits"}, "model": {"entrypoint": "m"}, "train": {"engine": "mxnet"}}
    overrides = {"train.epochs": 3, "data.params": {"n": 1}}

    spec = pipeline_from_mapping(mapping, tmp_path, overrides).spec

    assert spec.train.epochs == 3
    assert mapping["train"] == {"engine": "mxnet"}
    assert overrides == {"train.epochs": 3, "data.params": {"n": 1}}
