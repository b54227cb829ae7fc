"""A script is read, not run, before anything starts."""

import pytest

from training.spec.loader import pipeline_from_mapping
from training.steps.user_code import find_code_problems


def problems_of(folder, script="train.py"):
    mapping = {"name": "own", "train": {"engine": "tensorflow", "script": script}}
    return [str(problem) for problem in find_code_problems(pipeline_from_mapping(mapping, folder))]


@pytest.mark.parametrize("script", ["train.py", "./deep/train.py"])
def test_a_script_counts_from_the_folder_of_the_yaml(tmp_path, script):
    path = tmp_path / script
    path.parent.mkdir(exist_ok=True)
    path.write_text("import tensorflow\n")

    assert problems_of(tmp_path, script) == []


def test_nothing_of_it_is_run(tmp_path):
    """K54."""
    (tmp_path / "train.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")

    assert problems_of(tmp_path) == []
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("name", "text", "script", "words"),
    [
        ("trian.py", "", "train.py", ["must be an existing file", "Did you mean 'trian.py'?"]),
        ("train.sh", "", "train.sh", ["ends in .py", "train.sh"]),
        ("train.py", "import os\nfor x in:\n", "train.py", ["parsed", "train.py, line 2: invalid syntax"]),
        ("train.py", "\x00", "train.py", ["parsed", "null bytes"]),
    ],
)
def test_a_mistake_is_told_with_its_field_and_line(tmp_path, name, text, script, words):
    (tmp_path / name).write_text(text)

    (problem,) = problems_of(tmp_path, script)

    assert problem.startswith("train.script: ")
    assert all(word in problem for word in words), problem


@pytest.mark.parametrize("beside", ["training.py", "training"])
def test_a_module_called_like_ours_beside_it_is_refused(tmp_path, beside):
    """Imported before the script runs, ours would take the place of theirs."""
    (tmp_path / "train.py").touch()
    (tmp_path / beside).mkdir()

    (problem,) = problems_of(tmp_path)

    assert f"must not lie beside a module called training: that is Ganger's own. Received: train.py, {tmp_path}" in (
        problem
    )
