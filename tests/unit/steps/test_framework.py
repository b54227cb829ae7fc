"""Which framework Horovod trains with is read off the user's file, never run (ADR 9)."""

import pytest

from training.plan.built import check_preflight
from training.plan.framework import choose_environment
from training.plan.machine import EnvironmentFacts, HostFacts, MachineFacts
from training.spec.loader import pipeline_from_mapping
from training.steps.framework import recognise_framework

MACHINE = MachineFacts(
    hosts=(HostFacts(slots=4),),
    environments={name: EnvironmentFacts(name=name, python="python") for name in ("tensorflow", "mxnet")},
)

DIGITS = {"source": "digits"}


def choose(folder, *, script=False, entrypoint="net.py", data=DIGITS, **train):
    code = {"script": entrypoint} if script else {}
    mapping = {
        "name": "small",
        "data": data,
        "train": {"engine": "horovod", **code, **train},
        "cluster": {"workers": 2},
    }
    if not script:
        mapping["model"] = {"entrypoint": entrypoint}
    return recognise_framework(pipeline_from_mapping(mapping, folder)).spec


@pytest.mark.parametrize(
    ("text", "framework"),
    [
        ("import mxnet as mx", "mxnet"),
        ("from mxnet.gluon import nn", "mxnet"),
        ("def build_model():\n    from mxnet import gluon", "mxnet"),
        ("import horovod.mxnet as hvd", "mxnet"),
        ("from horovod import mxnet as hvd", "mxnet"),
        ("import keras", "tensorflow"),
        ("import numpy", "tensorflow"),
        ("from .mxnet import nets", "tensorflow"),
        ("import mxnet, keras", "tensorflow"),
        ("import mxnet\nimport horovod.tensorflow as hvd", "tensorflow"),
        ("raise SystemExit('it was run')", "tensorflow"),
        ("def broken(:", "tensorflow"),
    ],
)
@pytest.mark.parametrize("script", [False, True])
def test_imports_of_the_file_tell_the_framework(tmp_path, text, framework, script):
    (tmp_path / "net.py").write_text(text)

    spec = choose(tmp_path, script=script)

    assert spec.train.framework == framework
    assert choose_environment(spec) == framework


@pytest.mark.parametrize(("entrypoint", "framework"), [("gluon_mlp", "mxnet"), ("mlp", "tensorflow")])
def test_modules_are_found_without_being_imported(tmp_path, entrypoint, framework):
    """MXNet and TensorFlow are in no environment of this process."""
    assert choose(tmp_path, entrypoint=f"training.models.{entrypoint}").train.framework == framework


def test_what_the_spec_says_counts(tmp_path):
    (tmp_path / "net.py").write_text("import keras")

    assert choose_environment(choose(tmp_path, framework="mxnet")) == "mxnet"


@pytest.mark.parametrize("script", [False, True])
def test_a_file_that_is_not_there_is_left_to_the_checks(tmp_path, script):
    assert choose(tmp_path, script=script, entrypoint="absent.py").train.framework is None


@pytest.mark.parametrize(
    ("blocks", "problem"),
    [
        (
            {"reduction": "adasum"},
            "train.reduction: must be average for MXNet: Horovod has no other for it. Received: adasum.",
        ),
        (
            {"data": {"source": "build_dataset"}},
            "data.source: must not be `build_dataset` with a model of MXNet, which reads no tf.data.",
        ),
    ],
)
def test_what_horovod_has_for_tensorflow_alone_is_refused(tmp_path, blocks, problem):
    (tmp_path / "net.py").write_text("import mxnet")

    assert [str(one) for one in check_preflight(choose(tmp_path, **blocks), MACHINE)] == [problem]
