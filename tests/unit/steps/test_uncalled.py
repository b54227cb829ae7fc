"""A function that looks as if Ganger called it, and that nothing calls, is refused: the default would train unseen."""

import pytest

from training.spec.loader import pipeline_from_mapping
from training.steps.model_source import find_model_problems

MODEL = "def build_model(): ...\n"
CALLED = {"mxnet": ["build_loss", "build_trainer", "build_metrics"], "tensorflow": ["build_callbacks"]}


def problems_of(folder, text, engine="mxnet", **train):
    (folder / "net.py").write_text(MODEL + text)
    train = {"engine": engine, **train}
    model = {"entrypoint": "net.py"}
    mapping = {"name": "small", "data": {"source": "digits"}, "model": model, "train": train}
    if engine == "horovod":
        mapping["cluster"] = {"workers": 2}
    return [str(problem) for problem in find_model_problems(pipeline_from_mapping(mapping, folder))]


def define(name):
    return f"def {name}(): ..."


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("build_losses", "build_loss"),
        ("build_los", "build_loss"),
        ("buildloss", "build_loss"),
        ("buildLoss", "build_loss"),
        ("bulid_loss", "build_loss"),
        ("make_loss", "build_loss"),
        ("get_loss_fn", "build_loss"),
        ("loss", "build_loss"),
        ("make_trainer", "build_trainer"),
        ("build_trainner", "build_trainer"),
        ("build_optimizer", "build_trainer"),
        ("create_optimiser", "build_trainer"),
        ("build_metric", "build_metrics"),
        ("get_metrics", "build_metrics"),
        ("metrics", "build_metrics"),
    ],
)
def test_a_near_miss_is_told_with_what_was_meant(tmp_path, name, meant):
    assert problems_of(tmp_path, define(name)) == [
        "model.entrypoint: must give a function that Ganger is to call the name that Ganger calls. "
        f"Received: net.py, line 2: {name}, which nothing calls. "
        f"Rename it to {meant}, or let its name begin with _ if it is something else."
    ]


def test_a_near_miss_of_callbacks_is_told_in_a_file_of_keras(tmp_path):
    (problem,) = problems_of(tmp_path, define("build_callback"), engine="tensorflow")

    assert "Rename it to build_callbacks" in problem


@pytest.mark.parametrize(
    "text",
    [
        "def build_losses(): ...\ndef build_loss(): return build_losses()",
        "def make_loss(): ...\nbuild_loss = make_loss",
        "def make_loss(): ...\n__all__ = ['make_loss']",
        "def make_loss(): ...\ndef build_loss(): ...",
        "def make_loss(): ...\nfrom losses import build_loss",
        "def make_loss(): ...\nfrom losses import *",
        "@register\ndef make_loss(): ...",
        "def _make_loss(): ...",
        "from losses import make_loss",
        "class Net:\n    def loss(self): ...\n    def get_metrics(self): ...",
        "def outer():\n    def make_loss(): ...",
        "class make_loss: ...",
    ],
)
def test_what_is_called_or_no_function_of_the_file_passes(tmp_path, text):
    assert problems_of(tmp_path, text) == []


@pytest.mark.parametrize(
    "name",
    [
        "build_layer",
        "make_block",
        "get_matrices",
        "build_classes",
        "make_encoder",
        "train",
        "optimize",
        "build_mode",
        "lossless",
        "make_models",
        "get_params",
        "build_lstm",
        "create_container",
    ],
)
@pytest.mark.parametrize("engine", ["mxnet", "tensorflow"])
def test_other_names_pass(tmp_path, name, engine):
    assert problems_of(tmp_path, define(name), engine=engine) == []


@pytest.mark.parametrize("engine", CALLED)
def test_what_ganger_calls_passes(tmp_path, engine):
    assert problems_of(tmp_path, "\n".join(map(define, CALLED[engine])), engine=engine) == []


@pytest.mark.parametrize(
    ("engine", "name", "other"),
    [("mxnet", "build_callbacks", "Keras"), *(("tensorflow", name, "MXNet") for name in CALLED["mxnet"])],
)
def test_what_ganger_calls_under_the_other_framework_alone_is_told(tmp_path, engine, name, other):
    assert problems_of(tmp_path, define(name), engine=engine) == [
        "model.entrypoint: must use what it defines. "
        f"Received: net.py, line 2: {name}, which nothing calls: Ganger does in files of {other} alone. "
        "Call it in the file, or remove it."
    ]
    assert problems_of(tmp_path, f"{define(name)}\nx = {name}()", engine=engine) == []


@pytest.mark.parametrize(
    ("imports", "train", "told"),
    [
        ("import mxnet", {}, 1),
        ("import keras", {}, 0),
        ("import numpy", {"framework": "mxnet"}, 1),
        ("import mxnet, keras", {}, 0),
    ],
)
def test_under_horovod_the_framework_is_that_of_the_file(tmp_path, imports, train, told):
    assert len(problems_of(tmp_path, f"{imports}\n{define('make_trainer')}", engine="horovod", **train)) == told


def test_functions_under_conditions_are_looked_at(tmp_path):
    text = "try:\n    import fast\nexcept ImportError:\n    def make_loss(): ...\nelse:\n    def get_metrics(): ..."

    assert [problem.split(": ")[3].split(",")[0] for problem in problems_of(tmp_path, text)] == [
        "make_loss",
        "get_metrics",
    ]
