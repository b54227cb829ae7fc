"""Rules for rows that the model file's `build_dataset` gives."""

from pathlib import Path

import pytest

from training.errors import SpecError
from training.spec.dataset_rules import find_dataset_problems
from training.spec.loader import pipeline_from_mapping
from training.spec.pipeline import DataSpec

OWN = {"source": "build_dataset"}
SHARDED = {**OWN, "sharding": "own"}
ELASTIC = {"engine": "horovod", "batch_size": 12}


def load(data, train, cluster=None, model="net.py"):
    mapping = {"name": "small", "data": data, "train": train, "cluster": cluster or {}}
    return pipeline_from_mapping({**mapping, **({"model": {"entrypoint": model}} if model else {})}, Path.cwd()).spec


@pytest.mark.parametrize(
    ("data", "train", "cluster"),
    [
        (OWN, {"engine": "tensorflow"}, {}),
        (OWN, {"engine": "tensorflow", "strategy": "parameter_server", "steps_per_epoch": 3}, {}),
        (SHARDED, {**ELASTIC, "steps_per_epoch": 3}, {"workers": 3, "min_workers": 2}),
        (OWN, ELASTIC, {"workers": 3, "min_workers": 2}),
    ],
)
def test_what_is_right_passes(data, train, cluster):
    spec = load(data, train, cluster)

    assert spec.builds_dataset
    assert not spec.prepares_data


@pytest.mark.parametrize(
    ("data", "train", "cluster", "words"),
    [
        # K23
        (OWN, {"engine": "tensorflow", "strategy": "parameter_server"}, {}, "train.steps_per_epoch: is missing;"),
        ({"source": "digits"}, {"engine": "tensorflow", "steps_per_epoch": 3}, {}, "must not be given unless"),
        ({"source": "digits", "sharding": "own"}, {"engine": "tensorflow"}, {}, "data.sharding: must be `ganger`"),
        ({**OWN, "label": "y"}, {"engine": "tensorflow"}, {}, "data.label: must not be given with source"),
        (OWN, {"engine": "mxnet"}, {}, "data.source: must not be `build_dataset` with engine `mxnet`"),
        (SHARDED, ELASTIC, {"workers": 3, "min_workers": 2}, "since the number of shards may change"),
        (OWN, {"engine": "tensorflow", "steps_per_epoch": 0}, {}, "train.steps_per_epoch: must be at least 1"),
    ],
)
def test_what_is_wrong_is_refused(data, train, cluster, words):
    """K23, K24."""
    with pytest.raises(SpecError) as caught:
        load(data, train, cluster)

    assert words in str(caught.value)


def test_a_script_reads_its_own_rows():
    with pytest.raises(SpecError, match=r"must not be `build_dataset` with `train\.script`"):
        load(OWN, {"engine": "tensorflow", "script": "t.py"}, model=None)


@pytest.mark.parametrize(
    ("sharding", "params", "parameters", "words"),
    [
        ("ganger", {}, ["split", "batch_size", "seed", "shard"], []),
        ("own", {"folder": "x"}, ["split", "batch_size", "shard", "shards", "folder"], []),
        ("ganger", {}, ["split"], ["must take batch_size."]),
        ("own", {}, ["split", "batch_size", "shard"], ["data.sharding: own needs", "takes shards"]),  # K24
        ("ganger", {"foldr": 1}, ["split", "batch_size", "folder"], ["data.params.foldr", "Did you mean 'folder'?"]),
        ("ganger", {"seed": 1}, ["split", "batch_size", "seed"], ["data.params.seed: must not be given"]),
    ],
)
def test_a_function_must_take_what_it_is_called_with(sharding, params, parameters, words):
    data = DataSpec(source="build_dataset", sharding=sharding, params=params)

    problems = [str(problem) for problem in find_dataset_problems(parameters, data)]

    assert len(problems) == (1 if words else 0)
    assert all(word in "".join(problems) for word in words), problems
