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


@pytest.mark.parametrize(("fraction", "require"), [(0.0, {}), (0.1, {"accuracy": 0.9})])
def test_neither_alone_is_a_mistake(fraction, require):
    assert load(fraction, require).spec.data.validation_fraction == fraction
