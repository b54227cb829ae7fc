"""The `ganger` command: exit codes, and sentences instead of tracebacks."""

import subprocess
import sys
from pathlib import Path

import pytest

from training import settings

FIVE_MISTAKES = """\
name: dig its
data:
  source: digits
  valdation_fraction: 0.2
model: {entrypoint: training.models.mlp}
train:
  engine: tensorflow
  strategy: multi_worker_mirored
  epochs: "3"
  batch_size: 0
"""


def ganger(*arguments, home=None, **variables):
    env = {"PATH": "/usr/bin:/bin", settings.HOME: str(home or "/nonexistent"), **variables}
    command = [str(Path(sys.executable).parent / "ganger"), *map(str, arguments)]
    return subprocess.run(
        command, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False
    )


def test_five_mistakes_are_five_errors_with_their_lines(tmp_path):
    """ "Done when" 5 of the main job."""
    spec = tmp_path / "bad.yaml"
    spec.write_text(FIVE_MISTAKES)

    answer = ganger("validate", spec)

    *problems, summary = answer.stderr.splitlines()
    assert answer.returncode == 2
    assert [line.split(": ")[:2] for line in problems] == [
        [f"{spec}:1", "name"],
        [f"{spec}:4", "data.valdation_fraction"],
        [f"{spec}:8", "train.strategy"],
        [f"{spec}:9", "train.epochs"],
        [f"{spec}:10", "train.batch_size"],
    ]
    assert summary == "5 mistakes in 1 of 1 files."


def test_shipped_pipelines_are_valid():
    answer = ganger("validate", settings.REPOSITORY / "dags" / "pipelines")

    assert answer.returncode == 0, answer.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("plan", "no-such.yaml"), "no-such.yaml"),
        (("run",), "SPEC or --resume"),
        (("run", "--resume", "nothing"), "ganger runs"),
        (("logs", "nothing"), "ganger runs"),
        (("logs", "../../etc"), "ganger runs"),
        (("stop", "*"), "ganger runs"),
        (("stop", "nothing"), "ganger runs"),
        (("plan", settings.REPOSITORY / "dags/pipelines/digits.yaml", "--set", "train.epoch=3"), "`epochs`"),
        (("nonsense",), "nonsense"),
        (("validate",), "PATHS"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else None,
)
def test_a_users_mistake_is_a_sentence_and_exit_2(arguments, words, tmp_path):
    answer = ganger(*arguments, home=tmp_path)

    assert answer.returncode == 2
    assert words in answer.stderr
    assert "Traceback" not in answer.stderr


def test_an_unbuilt_backend_is_refused_before_anything_starts(tmp_path):
    """K07: nothing is started, nothing is left behind."""
    digits = settings.REPOSITORY / "dags/pipelines/digits.yaml"

    answer = ganger("run", digits, "--set", "cluster.backend=slurm", home=tmp_path)

    assert answer.returncode == 2
    assert "backend slurm is not built yet" in answer.stderr
    assert not (tmp_path / "runs").exists()


def test_no_runs_yet_says_how_to_start_one(tmp_path):
    answer = ganger("runs", home=tmp_path)

    assert answer.returncode == 0
    assert "ganger run" in answer.stdout


def test_asking_for_the_version_imports_no_command():
    code = (
        "import sys, training.cli as cli\n"
        "try: cli.ganger(['--version'])\n"
        "except SystemExit: pass\n"
        "assert not [name for name in sys.modules if name.startswith('training.commands')]"
    )

    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 0


def test_two_files_of_one_name_are_told(tmp_path):
    """Two DAGs cannot have one id."""
    text = (settings.REPOSITORY / "dags/pipelines/digits.yaml").read_text()
    for name in ("a.yaml", "b.yml"):
        (tmp_path / name).write_text(text)

    answer = ganger("validate", tmp_path)

    assert answer.returncode == 2
    assert "must be the name of one pipeline only. Received: digits" in answer.stderr


def test_a_model_to_start_from_that_is_not_there_is_a_mistake_of_the_file(tmp_path):
    spec = tmp_path / "tuned.yaml"
    digits = (settings.REPOSITORY / "dags/pipelines/digits.yaml").read_text()
    spec.write_text(digits.replace("model:\n", "model:\n  initialize_from: nowhere.keras\n", 1))

    answer = ganger("validate", spec)

    assert answer.returncode == 2
    assert answer.stderr.startswith(f"{spec}: model.initialize_from: must be ")


def test_an_approval_without_a_terminal_is_refused_before_the_start(tmp_path):
    digits = settings.REPOSITORY / "dags/pipelines/digits.yaml"

    answer = ganger("run", digits, "--set", "register.approval=true", home=tmp_path)

    assert answer.returncode == 2
    assert "Pass --yes" in answer.stderr
    assert not (tmp_path / "runs").exists()


def test_more_workers_than_slots_are_in_the_plan_and_end_the_run_before_its_start(tmp_path):
    """K13."""
    digits = settings.REPOSITORY / "dags/pipelines/digits.yaml"

    planned = ganger("plan", digits, home=tmp_path, GANGER_SLOTS="1")
    ran = ganger("run", digits, home=tmp_path, GANGER_SLOTS="1")

    sentence = "cluster.workers: must be at most the slots of 127.0.0.1, 1. Received: 2."
    assert f"not possible  {sentence}" in planned.stdout
    assert sentence in ran.stderr
    assert ran.returncode == 2
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("slots", ["0", "-1", "two", "1.5"])
def test_a_number_of_slots_that_is_none_is_refused(tmp_path, slots):
    answer = ganger("run", settings.REPOSITORY / "dags/pipelines/digits.yaml", home=tmp_path, GANGER_SLOTS=slots)

    assert answer.returncode == 2
    assert answer.stderr.endswith(
        f"GANGER_SLOTS: must be a whole number of at least 1. Received: '{slots}'. Unset it for one per core.\n"
    )


@pytest.mark.parametrize("change", ["model.entrypoint=nowhere.py", "model.initialize_from=nowhere.keras"])
def test_a_missing_file_is_in_the_plan_and_ends_the_run_before_its_start(tmp_path, change):
    digits = settings.REPOSITORY / "dags/pipelines/digits.yaml"
    change = ("--set", change)

    planned = ganger("plan", digits, *change, home=tmp_path)
    ran = ganger("run", digits, *change, home=tmp_path)

    assert "not possible" in planned.stdout
    assert "Received: nowhere." in planned.stdout
    assert ran.returncode == 2
    assert not (tmp_path / "runs").exists()
