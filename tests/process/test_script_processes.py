"""Somebody's own script as a rank, under a real supervisor: it must meet what `python script.py` would give it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from fakes.jobs import Job
from fakes.script_jobs import script_plan

from training.errors import SpecError, WorkerError
from training.run.follow import cancel, raise_for
from training.run.job import FailureHeadline, JobResult, JobState

LOOKS = """
import json, os, pickle, sys
import beside
class Own: pass
print("SAW", json.dumps({
    "argv": sys.argv, "name": __name__, "file": __file__, "spec": __spec__ is None, "path": sys.path[0],
    "main": sys.modules["__main__"].__dict__ is globals(),
    "pickled": pickle.loads(pickle.dumps(Own())).__class__ is Own,
    "cwd": os.getcwd(), "beside": beside.WHERE,
}))
"""


def headline(result: JobResult) -> FailureHeadline:
    assert result.failure is not None
    return result.failure


def saw(text: str) -> dict[str, object]:
    (line,) = [line for line in text.splitlines() if "SAW " in line]
    found: dict[str, object] = json.loads(line.partition("SAW ")[2])
    return found


def test_a_script_sees_what_python_would_show_it(job: Job, tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("WHERE = __file__")
    plan = script_plan(job, tmp_path, LOOKS, "--epochs", "3", "a b")
    result = job.run(plan)

    assert result.state is JobState.SUCCEEDED, result.failure
    bare = subprocess.run(
        [sys.executable, tmp_path / "script.py", "--epochs", "3", "a b"],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert saw(job.merged) == saw(bare.stdout)


def test_every_rank_is_told_of_the_others_and_of_the_run(job: Job, tmp_path: Path) -> None:
    program = (
        "import json, os\n"
        "config = json.loads(os.environ['TF_CONFIG'])\n"
        "print('TASK', config['task'], len(config['cluster']['worker']))\n"
        "folder = os.environ['GANGER_CHECKPOINT_DIR']\n"
        "print('RUN', os.environ['GANGER_ATTEMPT'], folder, 'GANGER_DATASET' in os.environ)\n"
    )
    assert job.run(script_plan(job, tmp_path, program, workers=2)).state is JobState.SUCCEEDED
    for rank in (0, 1):
        assert f"[rank {rank}] TASK {{'type': 'worker', 'index': {rank}}} 2" in job.merged
    assert f"RUN 1 {job.folder.path.parent.parent / 'checkpoints'} False" in job.merged


def test_an_exception_is_the_headline_with_the_line_of_the_script(job: Job, tmp_path: Path) -> None:
    """K15; no frame of ours stands in the way."""
    program = "def train():\n    raise ValueError('no such column')\ntrain()\n"
    result = job.run(script_plan(job, tmp_path, program))

    with pytest.raises(WorkerError) as caught:
        raise_for(result)
    lines = str(caught.value).splitlines()
    assert lines[0] == "rank 0 (worker) on 127.0.0.1 failed: ValueError: no such column (exit code 70)"
    assert f'File "{tmp_path / "script.py"}", line 2, in train' in str(caught.value)
    assert lines[-1] == "ValueError: no such column"
    assert "training/script" not in str(caught.value) + job.merged
    assert job.merged.count("ValueError: no such column") == 2  # the traceback, and the supervisor's word


@pytest.mark.parametrize(
    ("ending", "state", "exit_code"),
    [
        ("sys.exit()", JobState.SUCCEEDED, 0),
        ("sys.exit(0)", JobState.SUCCEEDED, 0),
        ("os._exit(0)", JobState.SUCCEEDED, 0),
        ("sys.exit(3)", JobState.FAILED, 3),
        ("sys.exit('the disk is full of cats')", JobState.FAILED, 1),
        ("os._exit(4)", JobState.FAILED, 4),
    ],
)
def test_exit_codes_mean_what_they_mean_in_a_shell(
    job: Job, tmp_path: Path, ending: str, state: JobState, exit_code: int
) -> None:
    """K15."""
    result = job.run(script_plan(job, tmp_path, f"import atexit, os, sys\natexit.register(print, 'bye')\n{ending}\n"))

    assert (result.state, result.exit_codes[0]) == (state, exit_code)
    assert ("bye" in job.merged) is not ending.startswith("os")
    if "cats" in ending:
        assert "the disk is full of cats" in headline(result).message


def test_what_cannot_be_imported_is_never_tried_again(job: Job, tmp_path: Path) -> None:
    """K17."""
    result = job.run(script_plan(job, tmp_path, "import no_such_module", limits={"user_restarts": 3}))

    assert result.attempts == 1
    with pytest.raises(SpecError, match="No module named 'no_such_module'"):
        raise_for(result)


def test_sigterm_ends_a_script_and_it_may_have_its_own_way_to_end(job: Job, tmp_path: Path) -> None:
    program = (
        "import os, signal, sys, time\n"
        "def leave(*_):\n    print('saved', flush=True)\n    sys.exit(0)\n"
        "if os.environ['GANGER_RANK'] == '1': signal.signal(signal.SIGTERM, leave)\n"
        "print('working', flush=True)\ntime.sleep(600)\n"
    )
    job.start(script_plan(job, tmp_path, program, workers=2, limits={"stop_grace_s": 10}))
    job.wait_for_text(r"\[rank 0\] working")
    job.wait_for_text(r"\[rank 1\] working")
    cancel(job.folder, "the test")
    result = job.follow()

    assert result.state is JobState.CANCELLED
    assert result.exit_codes == {0: -signal.SIGTERM, 1: 0}
    assert "[rank 1] saved" in job.merged


def test_silence_of_all_is_a_stall_with_the_stacks_of_the_script(job: Job, tmp_path: Path) -> None:
    program = "import time\ndef wait_for_ever():\n    time.sleep(600)\nprint('on', flush=True)\nwait_for_ever()\n"
    result = job.run(script_plan(job, tmp_path, program, workers=2, limits={"stall_timeout_s": 1.0}))

    assert "no sign of life" in headline(result).message or "silent" in headline(result).message
    assert job.merged.count('script.py", line 3 in wait_for_ever') == 2


def test_a_rank_may_be_quiet_while_another_one_speaks(job: Job, tmp_path: Path) -> None:
    """Most scripts print on rank 0 alone."""
    program = (
        "import os, time\n"
        "for step in range(15):\n"
        "    time.sleep(0.2)\n"
        "    if os.environ['GANGER_RANK'] == '0': print('step', step, flush=True)\n"
    )
    result = job.run(script_plan(job, tmp_path, program, workers=2, limits={"stall_timeout_s": 1.0}))

    assert result.state is JobState.SUCCEEDED, result.failure


def test_a_quiet_rank_that_the_kernel_holds_is_found_all_the_same(job: Job, tmp_path: Path) -> None:
    """K14 (d)."""
    program = (
        "import os, signal, time\n"
        "if os.environ['GANGER_RANK'] == '1': os.kill(os.getpid(), signal.SIGSTOP)\n"
        "while True:\n    time.sleep(0.1)\n    print('step', flush=True)\n"
    )
    result = job.run(script_plan(job, tmp_path, program, workers=2, limits={"stall_timeout_s": 1.0}))

    assert headline(result).rank == 1
    assert "SIGSTOP" in headline(result).message


def test_a_restarted_script_finds_its_own_checkpoints(job: Job, tmp_path: Path) -> None:
    program = (
        "import os, pathlib, signal\n"
        "folder = pathlib.Path(os.environ['GANGER_CHECKPOINT_DIR'])\n"
        "folder.mkdir(exist_ok=True, parents=True)\n"
        "found = [path.name for path in folder.iterdir()]\n"
        "print('attempt', os.environ['GANGER_ATTEMPT'], 'finds', found, flush=True)\n"
        "(folder / 'epoch-1').touch()\n"
        "if os.environ['GANGER_ATTEMPT'] == '1': os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    result = job.run(script_plan(job, tmp_path, program, limits={"restarts": 1}))

    assert (result.state, result.attempts) == (JobState.SUCCEEDED, 2)
    assert "attempt 2 finds ['epoch-1']" in job.merged


LEAVES_A_MODEL = (
    "import os, pathlib\n"
    "folder = pathlib.Path(os.environ['GANGER_MODEL_DIR'])\n"
    "folder.mkdir(parents=True)\n"  # as MLflow, which wants a folder that is not there
    "(folder / 'MLmodel').write_text('flavors: {}')\n"
)


def test_a_model_that_is_wanted_must_be_there(job: Job, tmp_path: Path) -> None:
    """K15: success means trained."""
    result = job.run(script_plan(job, tmp_path, "print('trained')", register={"model": "own"}))

    assert headline(result).kind == "WorkerError"
    assert "must leave a model in MLflow's format in $GANGER_MODEL_DIR" in headline(result).message


def test_what_an_attempt_left_is_out_of_the_way_of_the_next(job: Job, tmp_path: Path) -> None:
    dies = "if os.environ['GANGER_ATTEMPT'] == '1': os.kill(os.getpid(), 9)\n"
    plan = script_plan(job, tmp_path, LEAVES_A_MODEL + dies, limits={"restarts": 1}, register={"model": "own"})
    result = job.run(plan)

    assert (result.state, result.attempts) == (JobState.SUCCEEDED, 2), result.failure
    assert '"event":"model"' in job.folder.events.read_text()


def test_a_script_that_asks_for_nothing_needs_no_model(job: Job, tmp_path: Path) -> None:
    assert job.run(script_plan(job, tmp_path, "print('trained')")).state is JobState.SUCCEEDED
    assert not os.path.exists(job.folder.path.parent.parent / "model")  # noqa: PTH110
