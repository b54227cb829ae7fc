"""What `train.pipeline` must say to be one (K31): refused when the file is read, each in a sentence."""

from pathlib import Path

import pytest

from training.errors import SpecError
from training.spec.loader import pipeline_from_mapping


def load(pipeline=None, cluster=None, strategy="pipeline", **train):
    mapping = {
        "name": "small",
        "data": {"source": "digits"},
        "model": {"entrypoint": "training.models.mlp"},
        "train": {"engine": "tensorflow", "strategy": strategy, **train},
    }
    mapping["train"] |= {} if pipeline is None else {"pipeline": pipeline}
    mapping |= {} if cluster is None else {"cluster": cluster}
    return pipeline_from_mapping(mapping, Path.cwd()).spec


def refusal(*args, **kwargs):
    with pytest.raises(SpecError) as caught:
        load(*args, **kwargs)
    return str(caught.value)


def test_each_stage_is_a_worker():
    assert load({"stages": 3}).workers == 3
    assert load({"stages": 2}, {"workers": 2}).workers == 2
    assert load(None, {"workers": 4}).workers == 4
    assert load({"stages": 3}, {"workers": 4}, strategy="single").workers == 4


def test_stages_default_to_a_schedule_that_holds_few_activations():
    stages = load({"stages": 2}).train.pipeline
    assert (stages.micro_batches, stages.schedule, stages.partition) == (8, "1f1b", "auto")


@pytest.mark.parametrize(
    ("pipeline", "cluster", "sentence"),
    [
        ({}, None, "stages: is missing, and cluster.workers names fewer than 2 stages. Set it to 2, say."),
        ({}, {"workers": 1}, "stages: is missing, and cluster.workers names fewer than 2 stages. Set it to 2, say."),
        ({"stages": 1}, None, "stages: must be at least 2. Received: 1."),
        ({"stages": 2}, {"workers": 3}, "stages: must equal cluster.workers, 3, since each worker is a stage."),
        (
            {"stages": 4, "micro_batches": 3},
            None,
            "micro_batches: must be at least the number of stages, 4, or some would never work. Received: 3.",
        ),
        ({"stages": 9}, None, "or some would never work. Received: 8 (the default). Set it to 36, say."),
        (
            {"stages": 2, "micro_batches": 33},
            None,
            "micro_batches: must be at most train.batch_size, 32, for each to have a row. Received: 33.",
        ),
        (
            {"stages": 2, "partition": [2, 3, 4]},
            None,
            "partition: must hold one number of layers for each of the 2 stages. Received: 3 numbers.",
        ),
        ({"stages": 2, "partition": [5, 0]}, None, "partition[1]: must be at least 1. Received: 0."),
        ({"stages": 2, "partition": 3}, None, "partition: must be `auto`, or a list of the number of layers of each"),
    ],
)
def test_what_does_not_fit_is_refused_in_a_sentence(pipeline, cluster, sentence):
    said = refusal(pipeline, cluster)
    assert said.startswith("train.pipeline.")
    assert sentence in said
    assert "\n" not in said


def test_a_batch_may_leave_micro_batches_of_different_sizes():
    assert load({"stages": 2, "micro_batches": 4}, batch_size=10).train.batch_size == 10


def test_other_strategies_do_not_look_at_it():
    assert load({"stages": 5, "micro_batches": 3}, {"workers": 2}, strategy="mirrored").workers == 2
