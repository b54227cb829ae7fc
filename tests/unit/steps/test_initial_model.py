"""Where `model.initialize_from` points to, before anything is started."""

from pathlib import Path

import pytest

from training.plan.initial_model import parse_initial_model
from training.spec.loader import pipeline_from_mapping
from training.steps.initial_model import find_initial_model_problems, find_local_model


def load(wanted, folder):
    mapping = {
        "name": "small",
        "data": {"source": "digits"},
        "model": {"entrypoint": "training.models.mlp", "initialize_from": wanted},
        "train": {"engine": "tensorflow"},
    }
    return pipeline_from_mapping(mapping, folder)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("models:/digits@champion", "registry"),
        ("models:/digits/3", "registry"),
        ("runs:/0123456789abcdef0123456789abcdef/model", "registry"),
        ("0123456789abcdef0123456789abcdef", "run"),
        ("0123456789abcdef0123456789abcde", "path"),
        ("old/model.keras", "path"),
    ],
)
def test_kinds_are_told_by_their_form(text, kind):
    assert parse_initial_model(text).kind == kind


def test_folders_of_mlflow_and_keras_files_are_found(tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "MLmodel").touch()
    (tmp_path / "old.keras").touch()

    assert find_local_model("model", tmp_path) == tmp_path / "model"
    assert find_local_model("old.keras", tmp_path) == tmp_path / "old.keras"
    assert find_initial_model_problems(load("model", tmp_path)) == ()


@pytest.mark.parametrize("wanted", ["nothing", "empty", "weights.h5"])
def test_other_paths_are_refused_with_what_would_do(tmp_path, wanted):
    (tmp_path / "empty").mkdir()
    (tmp_path / "weights.h5").touch()

    (problem,) = find_initial_model_problems(load(wanted, tmp_path))

    assert problem.field == "model.initialize_from"
    assert problem.message.endswith(f"Received: {wanted}, looked for as {tmp_path / wanted}.")


def test_addresses_are_asked_for_later(tmp_path):
    assert find_initial_model_problems(load("models:/digits@champion", Path("/nowhere"))) == ()
