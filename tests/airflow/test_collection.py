from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from airflow.serialization.serialized_objects import DagSerialization
from specs import SPEC

from ganger.broken import TAG
from ganger.collection import build_dags


def write(folder: Path, name: str, text: str | None = None) -> Path:
    path = folder / f"{name}.yaml"
    path.write_text(SPEC.format(name=name) if text is None else text)
    return path


def is_broken(dag: object) -> bool:
    return TAG in dag.tags  # type: ignore[attr-defined]


def test_every_file_becomes_a_dag_of_its_name(folder: Path) -> None:
    write(folder, "one")
    write(folder, "file", SPEC.format(name="two"))
    assert set(build_dags([folder])) == {"one", "two"}


@pytest.mark.parametrize(
    ("text", "field", "words"),
    [
        (SPEC.format(name="bad").replace("epochs: 3", "epochs: many"), "train.epochs", "many"),
        (SPEC.format(name="bad").replace("epochs", "epoch"), "train.epoch", "epochs"),
        (SPEC.format(name="bad") + "schedule: every day\n", "schedule", "cron"),
        (SPEC.format(name="bad") + "schedule: {assets: ['airflow://x']}\n", "schedule.assets[0]", "airflow://x"),
        ("name: [", "", "YAML"),
        ("", "", "nothing"),
        ("\x00\x01", "", "control character"),
    ],
)
def test_a_broken_file_shows_its_problems_and_hides_no_other(folder: Path, text: str, field: str, words: str) -> None:
    """K53."""
    write(folder, "good")
    path = write(folder, "bad", text)
    dags = build_dags([folder])
    assert not is_broken(dags["good"])
    assert is_broken(dags["bad"])
    assert str(path) in dags["bad"].description
    page = dags["bad"].doc_md
    assert str(path) in page
    assert field in page
    assert words in page
    DagSerialization.from_dict(DagSerialization.to_dict(dags["bad"]))


def test_all_problems_of_a_file_are_on_its_page_with_their_lines(folder: Path) -> None:
    text = SPEC.format(name="bad").replace("epochs: 3", "epochs: -3").replace("workers: 2", "workers: 0")
    path = write(folder, "bad", text)
    page = build_dags([folder])["bad"].doc_md
    assert f"| {path}:6 | train.epochs |" in page
    assert f"| {path}:7 | cluster.workers |" in page


def test_values_that_cannot_be_stored_with_a_dag_are_a_problem_of_their_file(folder: Path) -> None:
    """K53: a number that is none, in the parameters of a model."""
    write(folder, "good")
    write(folder, "bad", SPEC.format(name="bad").replace("[16]", "[.nan]"))
    dags = build_dags([folder])
    assert not is_broken(dags["good"])
    assert "finite" in dags["bad"].doc_md


def test_a_second_file_with_the_same_name_names_both(folder: Path) -> None:
    first, second = write(folder, "a", SPEC.format(name="same")), write(folder, "b", SPEC.format(name="same"))
    dags = build_dags([folder])
    assert not is_broken(dags["same"])
    assert str(first) in dags["b"].doc_md
    assert str(second) in dags["b"].doc_md


def test_a_folder_that_does_not_exist_is_visible(folder: Path) -> None:
    write(folder, "good")
    dags = build_dags([folder, folder / "nowhere"])
    assert not is_broken(dags["good"])
    assert "GANGER_PIPELINES" in dags["nowhere"].doc_md


def test_an_error_that_nobody_thought_of_stays_with_its_file(folder: Path) -> None:
    write(folder, "good")
    write(folder, "odd").chmod(0)
    (folder / "folder.yaml").mkdir()
    dags = build_dags([folder])
    assert not is_broken(dags["good"])
    assert is_broken(dags["folder"])


def test_a_broken_file_never_takes_the_id_of_a_pipeline(folder: Path) -> None:
    write(folder, "a", SPEC.format(name="b"))
    write(folder, "b", "name: [")
    dags = build_dags([folder])
    assert not is_broken(dags["b"])
    assert is_broken(dags["b.yaml"])


@pytest.mark.parametrize("wanted", ["one", "two", "bad", "b.yaml"])
def test_a_task_gets_the_same_dag_as_the_scheduler(folder: Path, wanted: str) -> None:
    write(folder, "one")
    write(folder, "x", SPEC.format(name="two"))
    write(folder, "y", SPEC.format(name="two").replace("epochs: 3", "epochs: 4"))
    write(folder, "bad", "name: [")
    write(folder, "b", SPEC.format(name="bad2") + "x: [")
    every, alone = build_dags([folder]), build_dags([folder], wanted=wanted)
    if wanted in every:
        assert DagSerialization.to_dict(alone[wanted]) == DagSerialization.to_dict(every[wanted])
    else:
        assert alone.keys() == every.keys()


def test_a_task_reads_no_other_file(folder: Path) -> None:
    write(folder, "one")
    write(folder, "two")
    assert list(build_dags([folder], wanted="two")) == ["two"]


def test_the_broken_dag_fails_with_its_problems_and_is_not_retried(folder: Path) -> None:
    from ganger.errors import RETRY_POLICY, StepFailed

    path = write(folder, "bad", "name: [")
    task = build_dags([folder])["bad"].get_task("correct_the_file")
    with pytest.raises(StepFailed, match=str(path)):
        type(task).execute.__wrapped__(task, {})
    assert task.retry_policy is RETRY_POLICY


SERIALIZE = """
import json, sys
from pathlib import Path
from airflow.serialization.serialized_objects import DagSerialization
from ganger.collection import build_dags
for _ in range(3):
    dags = build_dags([Path(folder) for folder in sys.argv[1:]])
    print(json.dumps({name: DagSerialization.to_dict(dag) for name, dag in dags.items()}, sort_keys=True))
"""


def test_parsing_is_deterministic(folder: Path) -> None:
    """K53: six parses, in two processes with different hash seeds, give the same serialised DAGs.

    Keys are sorted, as Airflow does before it compares (`SerializedDagModel.hash`): the order of its own keys varies.
    """
    write(folder, "one")
    write(folder, "bad", "name: [")
    write(folder, "two", SPEC.format(name="two") + "register: {model: m, approval: true}\nschedule: '@daily'\n")
    seen = set()
    for seed in range(2):
        answer = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", SERIALIZE, str(folder)],
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
            check=True,
            capture_output=True,
            text=True,
            timeout=60,
        )
        seen.update(line for line in answer.stdout.splitlines() if line.startswith("{"))
    assert len(seen) == 1
    assert set(json.loads(seen.pop())) == {"one", "two", "bad"}
