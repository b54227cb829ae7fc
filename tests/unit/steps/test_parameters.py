"""Which parameters the MLflow run of a training gets."""

import pytest

from training.run.folder import RunFolder
from training.spec.loader import pipeline_from_mapping
from training.steps.context import StepContext
from training.steps.tracking import flatten_params


def flatten(folder, **blocks):
    spec = {"name": "p", "data": {"source": "digits"}, **blocks}
    file = pipeline_from_mapping(spec, folder)
    return flatten_params(StepContext(file=file, run=RunFolder.of("p-1", folder), log=print))


def test_what_decides_about_a_training_is_there_by_its_dotted_name(tmp_path):
    model = {"entrypoint": "net.py", "params": {"units": [8]}}
    params = flatten(tmp_path, model=model, train={"engine": "horovod", "batch_size": 8})

    assert params["model.params.units"] == "[8]"
    assert params["train.batch_size"] == "8"
    assert params["train.compression"] == "none"


@pytest.mark.parametrize("key", ["epochs", "batch_size", "seed", "checkpoint.keep", "compression"])
def test_what_a_script_decides_is_not_said_to_be_the_default(tmp_path, key):
    params = flatten(tmp_path, train={"engine": "horovod", "script": "fit.py"})

    assert f"train.{key}" not in params
    assert params["train.script"] == "fit.py"
