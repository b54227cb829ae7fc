"""Some faults of the drawing that `make chaos` plays whole: real ranks, a real MLflow server, one training a fault."""

import json
import subprocess
import sys

import pytest

from training import settings

pytestmark = [pytest.mark.chaos, pytest.mark.engine, pytest.mark.timeout(900)]

#: Of the families that nothing else plays whole: `live` kills tasks, runners and supervisors, `engine` kills ranks.
KINDS = ("checkpoint_flipped", "disk_full_for_a_while")


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """What came of each kind; the suite runs in a process of its own, which orphans come to."""
    out = tmp_path_factory.mktemp("chaos") / "chaos.md"
    command = [sys.executable, "-m", "tests.chaos", "--kinds", ",".join(KINDS), "--out", str(out)]
    answer = subprocess.run(command, cwd=settings.REPOSITORY, capture_output=True, text=True, check=False)
    print(answer.stdout)
    assert out.exists(), answer.stdout + answer.stderr
    lines = out.with_suffix(".jsonl").read_text().splitlines()
    found = [json.loads(line) for line in lines]
    assert answer.returncode == 0 or any(row["problems"] for row in found), answer.stdout
    return {row["name"]: row for row in found}


@pytest.mark.parametrize("kind", KINDS)
def test_training_ends_as_its_policy_says_and_leaves_nothing(rows, kind):
    """K37, K43: whatever is done to its checkpoints and its disk."""
    row = rows[kind]
    if row["left_out"]:
        pytest.skip(row["left_out"])

    assert row["problems"] == []
    assert row["ended"][-1] == "succeeded"
    assert row["difference"] <= 1e-5
