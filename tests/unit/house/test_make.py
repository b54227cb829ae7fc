import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

REPOSITORY = Path(__file__).resolve().parents[3]
MAKEFILE = (REPOSITORY / "Makefile").read_text()

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


def make(*arguments, **env):
    environ = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")} | env
    return subprocess.run(
        [shutil.which("make"), "--no-print-directory", *arguments],
        cwd=REPOSITORY,
        env=environ,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_make_alone_lists_the_targets():
    answer = make()

    assert answer.returncode == 0
    for target in (
        "setup",
        "demo",
        "stop",
        "test",
        "check",
        "lint",
        "format",
        "bench",
        "chaos",
        "lock",
        "clean",
        "distclean",
    ):
        assert f"make {target} " in answer.stdout


def test_every_listed_target_is_phony():
    listed = re.findall(r"^([a-z-]+):.*## ", MAKEFILE, re.MULTILINE)
    phony = re.search(r"^\.PHONY: (.*)$", MAKEFILE, re.MULTILINE)[1].split()

    assert set(listed) <= set(phony)


def test_a_missing_python_is_one_sentence():
    answer = make("setup", "PYTHON=python3.11-that-is-nowhere")

    assert answer.returncode != 0
    assert "python3.11-that-is-nowhere is not on PATH" in answer.stderr
    assert "Traceback" not in answer.stderr


def test_a_wrong_python_is_one_sentence(tmp_path):
    other = tmp_path / "python3.9"
    other.write_text('#!/bin/sh\n[ "$1" = -V ] && echo "Python 3.9.2" && exit 0\nexit 1\n')
    other.chmod(0o755)

    answer = make("setup", f"PYTHON={other}")

    assert answer.returncode != 0
    assert "needs Python 3.11" in answer.stderr
    assert "Python 3.9.2" in answer.stderr


def test_pre_commit_runs_what_make_lint_runs():
    recipe = re.search(r"^lint:.*\n\t@.*for rule in (.*); do", MAKEFILE, re.MULTILINE)[1]
    lint = set(re.findall(r'"([^"]+)"', recipe))
    hooks = yaml.safe_load((REPOSITORY / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]

    assert {hook["entry"].removeprefix(".venv/bin/") for hook in hooks} == lint
    assert all(hook["language"] == "system" for hook in hooks)


def test_ci_lints_and_tests_and_is_valid_bash():
    script = REPOSITORY / ".ci" / "run"
    subprocess.run(["bash", "-n", script], check=True)

    text = script.read_text()
    assert "set -euo pipefail" in text
    assert re.search(r"^make lint", text, re.MULTILINE)
    assert re.search(r"^make test$", text, re.MULTILINE)


def test_set_up_needs_the_standard_library_only():
    """The first environment is made by a Python that has nothing else."""
    code = "import sys, training.environments.__main__ as m; print(*sorted({n.split('.')[0] for n in sys.modules}))"
    command = [shutil.which("python3.11") or "python3.11", "-S", "-c", code]
    answer = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True)

    import sys

    loaded = {name for name in answer.stdout.split() if not name.startswith("_")}
    assert loaded <= {*sys.stdlib_module_names, "training"}
