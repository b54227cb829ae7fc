"""A model file is read, not imported, before anything starts."""

import pytest

from training.spec.loader import pipeline_from_mapping
from training.steps.model_source import find_model_problems, imports_mlflow


def make_file(folder, text, params=None, entrypoint="net.py", data=None, engine="tensorflow"):
    if text is not None:
        (folder / "net.py").write_text(text)
    mapping = {
        "name": "small",
        "data": data or {"source": "digits"},
        "model": {"entrypoint": entrypoint, "params": params or {}},
        "train": {"engine": engine},
    }
    return pipeline_from_mapping(mapping, folder)


def problems_of(folder, *arguments, **options):
    return [str(problem) for problem in find_model_problems(make_file(folder, *arguments, **options))]


@pytest.mark.parametrize(
    "text",
    [
        "def build_model(width=1): ...",
        "def build_model(**params): ...",
        "from somewhere import build_model",
        "from somewhere import *",
        "build_model = object()",
        "if True:\n    def build_model(width): ...",
    ],
)
def test_what_may_be_right_passes(tmp_path, text):
    assert problems_of(tmp_path, text, {"width": 3}) == []


def test_a_function_is_not_named(tmp_path):
    assert problems_of(tmp_path, "def build(): ...", entrypoint="net.py:build") == [
        "model.entrypoint: must be a module or a path that ends in .py. Received: net.py:build. "
        "Leave out :build; the function is always build_model."
    ]


def test_shipped_and_uninstalled_modules_pass(tmp_path):
    assert problems_of(tmp_path, None, entrypoint="training.models.mlp") == []
    assert problems_of(tmp_path, None, entrypoint="only.in.the.engine") == []


@pytest.mark.parametrize(
    ("text", "params", "words"),
    [
        (None, {}, ["model.entrypoint", "net.py"]),
        ("def build_model(:", {}, ["model.entrypoint", "line 1"]),
        ("def build(): ...", {}, ["must have a function build_model"]),
        ("def build_model(width=1): ...", {"widht": 2}, ["model.params.widht", "Did you mean 'width'?"]),
        (
            "def build_model(width=1): ...\ndef build_loss(): ...\ndef build_trainer(params, rate=1): ...",
            {"rat": 2},
            ["must be a parameter of build_model(width) or build_trainer(params, rate). Did you mean 'rate'?"],
        ),
    ],
)
def test_a_mistake_is_told_with_its_field(tmp_path, text, params, words):
    (problem,) = problems_of(tmp_path, text, params, engine="mxnet")

    assert all(word in problem for word in words), problem


def test_nothing_of_the_file_is_run(tmp_path):
    """K54."""
    assert problems_of(tmp_path, f"open({str(tmp_path / 'ran')!r}, 'w')\ndef build_model(): ...") == []
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("text", "imports"),
    [
        ("import mlflow", True),
        ("import keras, mlflow.keras as logs", True),
        ("def build_model():\n    from mlflow import log_param", True),
        ("import mlflower", False),
        ("from . import mlflow", False),
        ("# import mlflow", False),
    ],
)
def test_a_file_that_imports_mlflow_is_known(tmp_path, text, imports):
    """K39."""
    assert imports_mlflow(make_file(tmp_path, text)) is imports


def test_what_has_no_text_imports_nothing(tmp_path):
    assert not imports_mlflow(make_file(tmp_path, None, entrypoint="only.in.the.engine"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["data.source: needs a function build_dataset in the model file"]),
        ("def build_dataset(split): ...", ["must take batch_size"]),
        ("def build_dataset(split, batch_size): ...", []),
        ("from rows import build_dataset", []),
    ],
)
def test_build_dataset_is_looked_for_where_the_rows_come_from_it(tmp_path, text, words):
    build = "def build_model(): ..."
    problems = problems_of(tmp_path, f"{build}\n{text}", data={"source": "build_dataset"})

    assert len(problems) == len(words)
    assert all(word in problem for word, problem in zip(words, problems, strict=True)), problems
    assert problems_of(tmp_path, build) == []


@pytest.mark.parametrize(
    ("engine", "text", "other"),
    [
        ("mxnet", "import tensorflow as tf", "tensorflow"),
        ("mxnet", "from keras import layers", "tensorflow"),
        ("tensorflow", "from mxnet.gluon import nn", "mxnet"),
    ],
)
def test_a_file_of_the_other_framework_is_told(tmp_path, engine, text, other):
    (problem,) = problems_of(tmp_path, f"{text}\ndef build_model(): ...", engine=engine)

    assert problem == (
        f"model.entrypoint: must be written for the framework that engine {engine} trains. "
        f"Received: net.py, which imports {other} alone. Say train.engine: {other}."
    )


@pytest.mark.parametrize("text", ["import mxnet, keras", "import numpy", "import mxnet"])
def test_a_file_that_may_be_of_its_framework_passes(tmp_path, text):
    assert problems_of(tmp_path, f"{text}\ndef build_model(): ...", engine="mxnet") == []
