"""Rules between blocks that the tables of messages leave out."""

from pathlib import Path

import pytest

from training.errors import SpecError
from training.spec.loader import pipeline_from_mapping


def load(fraction, require):
    mapping = {
        "name": "small",
        "data": {"source": "digits", "validation_fraction": fraction},
        "model": {"entrypoint": "training.models.mlp"},
        "train": {"engine": "tensorflow"},
        "evaluate": {"require": require},
    }
    return pipeline_from_mapping(mapping, Path.cwd())


def test_a_requirement_needs_rows_that_show_it():
    with pytest.raises(SpecError, match=r"data\.validation_fraction: must be more than 0 where `evaluate\.require`"):
        load(0.0, {"accuracy": 0.9})


@pytest.mark.parametrize(
    "train",
    [
        {"engine": "tensorflow", "strategy": "multi_worker_mirrored"},
        {"engine": "horovod"},
        {"engine": "horovod", "epochs": 1},  # the default
    ],
)
def test_a_script_cuts_its_own_batches_and_may_have_its_own_rows(train):
    """32 rows by default, which 3 workers could not share."""
    mapping = {"name": "own", "train": {**train, "script": "t.py", "args": ["-v"]}, "cluster": {"workers": 3}}

    assert pipeline_from_mapping(mapping, Path.cwd()).spec.data is None


def test_whether_blocks_are_compiled_is_for_the_script_to_say():
    train = {"engine": "mxnet", "strategy": "dist_sync", "script": "t.py", "hybridize": False}

    with pytest.raises(SpecError, match=r"train\.hybridize: must not be given with `train\.script`"):
        pipeline_from_mapping({"name": "own", "train": train, "cluster": {"workers": 2}}, Path.cwd())


@pytest.mark.parametrize(("fraction", "require"), [(0.0, {}), (0.1, {"accuracy": 0.9})])
def test_neither_alone_is_a_mistake(fraction, require):
    assert load(fraction, require).spec.data.validation_fraction == fraction


def load_placed(strategy="model_parallel", devices=2, batch_size=32, **train):
    mapping = {
        "name": "placed",
        "data": {"source": "digits"},
        "model": {"entrypoint": "training.models.gluon_mlp"},
        "train": {"engine": "mxnet", "strategy": strategy, "batch_size": batch_size, **train},
        "cluster": {} if strategy == "single" else {"devices": devices},
    }
    return pipeline_from_mapping(mapping, Path.cwd()).spec.train


@pytest.mark.parametrize(
    ("how", "says"),
    [
        (
            {"placement": {"a": 0, "b": 2}},
            "train.placement.b: must be one of the 2 devices, which count from 0. Received: 2.",
        ),
        (
            {"placement": {"a": 0, "b": "node-b:0"}},
            "train.placement.b: must be the number of a device of the one process",
        ),
        ({"placement": {"a": 0}}, "train.placement: must give each of the 2 devices a block. Received: none for 1."),
        ({"placement": {"a": 0}, "strategy": "single"}, "train.placement: must not be given with strategy `single`"),
        ({"micro_batches": 33}, "train.micro_batches: must be at most the 32 rows of a batch. Received: 33."),
        ({"micro_batches": 2, "strategy": "data_parallel"}, "train.micro_batches: must not be given with strategy"),
    ],
)
def test_blocks_and_micro_batches_that_do_not_fit_are_refused(how, says):
    """K31, K33."""
    with pytest.raises(SpecError) as caught:
        load_placed(**how)
    assert says in str(caught.value)


def test_blocks_may_be_placed_on_all_devices():
    train = load_placed(placement={"a": 0, "b": 1, "c": 0}, micro_batches=5, batch_size=33)
    assert (train.placement, train.micro_batches) == ({"a": 0, "b": 1, "c": 0}, 5)
