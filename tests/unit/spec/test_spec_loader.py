"""Loading: what a spec counts its paths from, files that are no spec, specs written in Python, cost."""

import datetime
import os
import subprocess
import sys
from pathlib import Path

import pytest

from training.errors import SpecError
from training.spec.loader import load_pipeline, pipeline_from_mapping
from training.spec.text import MAX_BYTES

MAPPING = {
    "name": "small",
    "data": {"source": "digits"},
    "model": {"entrypoint": "training.models.mlp", "params": {"hidden": (128, 64)}},
    "train": {"engine": "tensorflow"},
}
TEXT = "name: small\ndata: {source: digits}\nmodel: {entrypoint: m.py}\ntrain: {engine: tensorflow}\n"


def write(path, data):
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def complaint(call, *arguments):
    with pytest.raises(SpecError) as caught:
        call(*arguments)
    (problem,) = caught.value.problems
    return problem


def test_a_loaded_file_knows_where_its_paths_count_from(tmp_path, monkeypatch):
    write(tmp_path / "p.yaml", TEXT)
    monkeypatch.chdir(tmp_path)

    loaded = load_pipeline(Path("p.yaml"))

    assert loaded.path == Path("p.yaml")
    assert loaded.base_dir == tmp_path
    assert loaded.spec.experiment_name == "small"


def test_five_mistakes_are_told_at_once_in_the_order_of_the_file(tmp_path):
    text = (
        "name: my spec\ndata:\n  sorce: digits\nmodel: {}\ntrain:\n  engine: tensorflow\n  epochs: '3'\nevaluat: {}\n"
    )

    with pytest.raises(SpecError) as caught:
        load_pipeline(write(tmp_path / "p.yaml", text))

    assert [(problem.line, problem.field) for problem in caught.value.problems] == [
        (1, "name"),
        (2, "data.source"),
        (3, "data.sorce"),
        (4, "model.entrypoint"),
        (7, "train.epochs"),
        (8, "evaluat"),
    ]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"name: caf\xe9\n", "must be UTF-8. Received: the byte 0xe9. Save it as UTF-8."),
        ("name: a".encode("utf-16"), "must be UTF-8. Received: UTF-16. Save it as UTF-8."),
        (b"\0", r"the text holds the control character '\x00'. Remove it."),
        (b"#" * (MAX_BYTES + 1), "must be a file of at most 256 KiB. Is it a pipeline file?"),
    ],
)
def test_bytes_that_are_no_text_are_refused_in_a_sentence(data, message, tmp_path):
    problem = complaint(load_pipeline, write(tmp_path / "p.yaml", data))

    assert str(problem).partition(": ")[2] == message


def test_a_byte_order_mark_and_windows_lines_do_no_harm(tmp_path):
    data = b"\xef\xbb\xbf" + TEXT.replace("\n", "\r\n").encode()

    assert load_pipeline(write(tmp_path / "p.yaml", data)).spec.name == "small"


def test_paths_that_are_no_file_are_refused_in_a_sentence(tmp_path):
    os.mkfifo(tmp_path / "pipe")

    said = {
        name: complaint(load_pipeline, tmp_path / name).message for name in ("", "absent.yaml", "pipe", "zero\0byte")
    }

    assert said == {
        "": "must be a file. Received: a folder.",
        "absent.yaml": "does not exist.",
        "pipe": "must be an ordinary file. Received: a device, pipe or socket.",
        "zero\0byte": "cannot be a path: it holds a zero byte.",
    }


def test_a_file_that_cannot_be_read_says_why():
    """Even root cannot read the beginning of its own memory."""
    assert complaint(load_pipeline, Path("/proc/self/mem")).message == "cannot be read (Input/output error)."


def test_a_spec_in_python_is_the_same_spec(tmp_path):
    spec = pipeline_from_mapping(MAPPING, tmp_path).spec

    assert spec.model.params == {"hidden": [128, 64]}
    assert pipeline_from_mapping(spec.model_dump(mode="json", by_alias=True), tmp_path).spec == spec


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (datetime.date(2024, 1, 1), "Received: a Python date."),
        ({1, 2}, "Received: a Python set."),
        (lambda x: x, "Received: a Python function."),
        (b"bytes", "Received: a Python bytes."),
        (float("nan"), "must be a finite number of at most 64 bits. Received: NaN."),
        (2**70, "must be a finite number of at most 64 bits."),
        ({1: "a"}, "a key must be text. Received: the whole number 1."),
        ("\ud800", "must be Unicode text without zero bytes."),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_yaml_cannot_say_is_refused_with_its_field(value, message, tmp_path):
    """K53."""
    mapping = {**MAPPING, "model": {"entrypoint": "m", "params": {"start": value}}}

    problem = complaint(pipeline_from_mapping, mapping, tmp_path)

    assert problem.field == "model.params.start"
    assert message in problem.message


def test_python_tags_are_refused_in_yaml(tmp_path):
    """K53: the file never makes an object, and each tag is told."""
    text = TEXT.replace("m.py", "m.py, params: {a: !!set {x}, b: !!python/tuple [1], c: !!timestamp 2024-01-01}")

    with pytest.raises(SpecError) as caught:
        load_pipeline(write(tmp_path / "p.yaml", text))

    assert [problem.field for problem in caught.value.problems] == [f"model.params.{key}" for key in "abc"]


def test_a_mapping_that_holds_itself_ends_in_a_sentence(tmp_path):
    params: dict[str, object] = {}
    params["again"] = params

    problem = complaint(pipeline_from_mapping, {**MAPPING, "model": {"entrypoint": "m", "params": params}}, tmp_path)

    assert problem.message == "is nested deeper than 32 levels."


def test_thousands_of_mistakes_end_in_a_hundred_and_a_count(tmp_path):
    text = TEXT + "".join(f"key{number}: 1\n" for number in range(5000))

    with pytest.raises(SpecError) as caught:
        load_pipeline(write(tmp_path / "p.yaml", text))

    assert len(caught.value.problems) <= 101


def test_aliases_cannot_blow_up(tmp_path):
    levels = "".join(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9) if n else 'lol'}]\n" for n in range(9))

    with pytest.raises(SpecError, match="must be written out"):
        load_pipeline(write(tmp_path / "p.yaml", levels))


def test_the_spec_package_needs_pydantic_and_yaml_alone():
    code = "import sys, training.spec.loader, training.spec.schema; print(*sys.modules)"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    outside = {name.partition(".")[0] for name in answer.stdout.split()} - set(sys.stdlib_module_names)

    assert not outside & {"airflow", "click", "mlflow", "numpy", "pandas", "tensorflow", "keras", "psutil"}
