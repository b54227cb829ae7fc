"""The JSON schema and the reference page: made from the models, complete, up to date."""

import jsonschema
import pytest
import yaml

from training.settings import REPOSITORY
from training.spec.pipeline import PipelineSpec
from training.spec.reference import render_reference
from training.spec.schema import REFERENCE_PATH, SCHEMA_PATH, main, pipeline_schema, render_schema, write_reference

SCHEMA = pipeline_schema()
VALIDATOR = jsonschema.validators.validator_for(SCHEMA)(SCHEMA)
PIPELINES = sorted((REPOSITORY / "dags" / "pipelines").glob("*.yaml"))
SPEC = {"name": "a", "data": {"source": "digits"}, "model": {"entrypoint": "m"}, "train": {"engine": "tensorflow"}}


@pytest.mark.parametrize(
    ("path", "text"), [(SCHEMA_PATH, render_schema()), (REFERENCE_PATH, render_reference(SCHEMA))], ids=str
)
def test_the_files_are_up_to_date(path, text):
    """When stale: python -m training.spec.schema --write."""
    assert (REPOSITORY / path).read_text(encoding="utf-8") == text


def test_the_schema_is_a_schema():
    VALIDATOR.check_schema(SCHEMA)
    assert SCHEMA["$schema"].endswith("2020-12/schema")


def test_every_key_has_a_description_and_no_block_takes_unknown_keys():
    blocks = [SCHEMA, *SCHEMA["$defs"].values()]

    assert all(block["additionalProperties"] is False for block in blocks)
    assert all("description" in node or "$ref" in node for block in blocks for node in block["properties"].values())


def test_keys_are_the_yaml_names():
    assert "register" in SCHEMA["properties"]
    assert "registration" not in SCHEMA["properties"]


@pytest.mark.parametrize("path", PIPELINES, ids=lambda path: path.stem)
def test_shipped_pipelines_fit_the_schema(path):
    VALIDATOR.validate(yaml.safe_load(path.read_text()))


@pytest.mark.parametrize(
    ("change", "fits"),
    [
        ({}, True),
        ({"schedule": "@daily", "evaluate": {"require": {"accuracy": 0.9, "loss": {"max": 1}}}}, True),
        ({"schedule": {"assets": ["x"]}}, True),
        ({"more": 1}, False),
        ({"name": "a b"}, False),
        ({"train": {"engine": "tensorflow", "strategy": "dist_sync"}}, False),
        ({"train": {"engine": "mxnet", "strategy": "dist_sync"}}, True),
        ({"cluster": {"workers": 0}}, False),
    ],
)
def test_an_editor_would_say_what_the_loader_says(change, fits):
    assert VALIDATOR.is_valid({**SPEC, **change}) is fits


def test_the_page_has_every_key_of_every_block():
    page = render_reference(SCHEMA)

    for block in (SCHEMA, *SCHEMA["$defs"].values()):
        assert all(f"| `{key}` |" in page for key in block["properties"]), block["title"]
    assert all(field.description in page for field in PipelineSpec.model_fields.values())


def test_writing_twice_changes_nothing(tmp_path):
    assert write_reference(tmp_path) == [SCHEMA_PATH, REFERENCE_PATH]
    assert write_reference(tmp_path) == []


def test_the_command_prints_the_schema(capsys):
    main([])

    assert capsys.readouterr().out == render_schema()
