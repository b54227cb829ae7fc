"""Ranks that misbehave in every way, under a real supervisor."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from pathlib import Path

import pytest
from fakes.jobs import Job, is_gone
from fakes.toys import ENDS, LEAVES_A_HIDDEN_CHILD, LEAVES_AN_UNMARKED_CHILD, STUBBORN, WORKS, toy

from training.errors import PreflightError, WorkerError
from training.run.folder import JobFolder
from training.run.follow import raise_for
from training.run.job import FailureHeadline, JobResult, JobState


def _headline(result: JobResult) -> FailureHeadline:
    assert result.failure is not None
    return result.failure


def test_a_gang_succeeds(job: Job) -> None:
    result = job.run(job.plan(toy("ready()\ntell('result', values={'x': rank})"), ENDS))
    assert (result.state, result.exit_codes, result.values) == (JobState.SUCCEEDED, {0: 0, 1: 0}, {"x": 0})
    assert "[rank 1] done" in job.merged


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("raise ValueError('boom')", "ValueError: boom (exit code 1)"),
        ("sys.exit(7)", "exit code 7"),
        ("sys.exit(99)", "exit code 99"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "killed by SIGKILL"),
        ("import ctypes; ctypes.string_at(0)", "killed by SIGSEGV"),
    ],
)
def test_a_rank_that_dies_ends_the_gang_and_heads_the_error(job: Job, program: str, message: str) -> None:
    """K14 (a) to (c), K15."""
    result = job.run(job.plan(STUBBORN, toy(f"ready(); time.sleep(0.2); step(3)\n{program}")))
    headline = _headline(result)
    assert (headline.rank, headline.host, headline.step) == (1, "127.0.0.1", 3)
    assert headline.message == message
    assert result.exit_codes[0] == -signal.SIGKILL


def test_the_error_ends_with_the_traceback_under_a_line_that_names_the_rank(job: Job) -> None:
    result = job.run(job.plan(WORKS, toy("ready()\ndef train(): raise ValueError('boom')\ntrain()")))
    with pytest.raises(WorkerError) as caught:
        raise_for(result)
    lines = str(caught.value).splitlines()
    assert lines[0] == "rank 1 (worker) on 127.0.0.1 failed: ValueError: boom (exit code 1)"
    assert lines[-1] == "ValueError: boom"
    assert any("in train" in line for line in lines)


def test_a_rank_that_is_stopped_is_caught_by_the_stall_timeout(job: Job) -> None:
    """K14 (d)."""
    plan = job.plan(
        WORKS, toy("ready()\nos.kill(os.getpid(), signal.SIGSTOP)"), limits={"stall_timeout_s": 1.0, "restarts": 0}
    )
    headline = _headline(job.run(plan))
    assert headline.rank == 1
    assert "the kernel holds it stopped (SIGSTOP)" in headline.message


def test_a_rank_that_hangs_at_the_start_ends_the_whole_gang(job: Job) -> None:
    """K02: who joined, who did not, and the last line of the missing one."""
    result = job.run(
        job.plan(WORKS, toy("say('looking for a license')\ntime.sleep(3600)"), limits={"start_timeout_s": 0.7})
    )
    headline = _headline(result)
    assert "Ready: rank 0 (worker). Not ready: rank 1 (worker) on 127.0.0.1." in headline.message
    assert headline.detail == "rank 1 (worker): last line: looking for a license"


def test_a_hidden_grandchild_that_ignores_sigterm_is_ended(job: Job) -> None:
    """K16: it left the process group and the session, and its parent is dead."""
    job.start(job.plan(LEAVES_A_HIDDEN_CHILD, toy("ready(); time.sleep(0.5); sys.exit(3)")))
    result = job.follow()
    hidden = int(job.wait_for_text(r"hidden (\d+)")[1])
    assert is_gone(hidden)
    assert f"ended what the ranks left behind: process {hidden}" in result.notes


def test_a_hidden_grandchild_without_the_mark_is_ended_too(job: Job) -> None:
    """K16: orphans come back to the supervisor, whatever is in their environment."""
    result = job.run(job.plan(LEAVES_AN_UNMARKED_CHILD))
    hidden = int(job.wait_for_text(r"hidden (\d+)")[1])
    assert result.state is JobState.SUCCEEDED
    assert is_gone(hidden)


def test_a_pipe_does_not_hide_a_failure(job: Job, tmp_path: Path) -> None:
    """K15: a plain pipe to `tee` gives 0."""
    pipe = f"{sys.executable} -I -S -c 'import sys; sys.exit(3)' | tee {tmp_path / 'log'}"
    assert job.run(job.plan(("bash", "-c", pipe))).exit_codes == {0: 3}


def test_missing_and_old_outputs_fail_the_job(job: Job, tmp_path: Path) -> None:
    """K15."""
    old = tmp_path / "old"
    old.touch()
    os.utime(old, (1.0, 1.0))
    result = job.run(job.plan(ENDS, outputs=(str(tmp_path / "model"), str(old))))
    message = _headline(result).message
    assert f"{tmp_path / 'model'} is missing" in message
    assert f"{old} is older than the job" in message


def test_outputs_that_were_made_are_a_success(job: Job, tmp_path: Path) -> None:
    model = tmp_path / "model"
    program = f"ready(); os.makedirs({str(model)!r}, exist_ok=True); open({str(model / 'MLmodel')!r}, 'w').close()"
    assert job.run(job.plan(toy(program), outputs=(str(model), str(model / "MLmodel")))).state is JobState.SUCCEEDED


def test_lines_stay_whole_whatever_bytes_come(job: Job) -> None:
    """Half lines of two ranks, bytes that are no text, a line of 1 MB, an event after half a line, half a last line."""
    program = """
ready()
for _ in range(20):
    os.write(1, b"half of %d " % rank); time.sleep(0.005); os.write(1, b"and the rest\\n")
os.write(1, b"\\xff\\xfe bytes\\n")
os.write(2, b"x" * 1_000_000 + b"\\n")
os.write(1, b"before the event"); step(9)
os.write(1, b"no line feed at the end")
"""
    result = job.run(job.plan(toy(program), toy(program)))
    assert result.state is JobState.SUCCEEDED
    for rank in (0, 1):
        assert job.merged.count(f"[rank {rank}] half of {rank} and the rest\n") == 20
        assert f"[rank {rank}] before the event\n" in job.merged
        assert job.folder.rank_log(rank).read_bytes().count(b"x") == 1_000_000
        assert b"\xff\xfe bytes\n" in job.folder.rank_log(rank).read_bytes()
        assert f"[rank {rank}] no line feed at the end\n" in job.merged
    assert max(map(len, job.merged.splitlines())) < 3_000
    assert job.folder.events.read_text().count('"event":"step"') == 2


def test_a_program_that_is_not_there_is_named(job: Job) -> None:
    """K07: and nothing of the gang was started."""
    result = job.run(job.plan(WORKS, ("/no/such/python", "-m", "training.worker"), limits={"restarts": 3}))
    assert result.exit_codes == {}
    with pytest.raises(PreflightError, match="Received: /no/such/python"):
        raise_for(result)


def test_ranks_get_their_environment_and_no_more(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    """K12: threads are held to the plan. K18: what a rank need not know it is not told."""
    monkeypatch.setenv("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", "postgresql://u:pw@db/airflow")
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", "s3cr3t-XYZ")
    facts = "{'stdin': os.read(0, 1).decode(), 'sid': os.getsid(0), 'pid': os.getpid()}"
    program = f"ready()\ntell('result', values=dict(os.environ) | {facts})"
    plan = job.plan(toy(program), ENDS, ports=("chief",))
    processes = (plan.processes[0].model_copy(update={"env": {"ADDRESS": "127.0.0.1:{port:chief}"}, "threads": 3}),)
    env = job.run(plan.model_copy(update={"processes": processes + plan.processes[1:]})).values
    assert env["OMP_NUM_THREADS"] == env["TF_NUM_INTRAOP_THREADS"] == "3"
    assert (env["GANGER_RANK"], env["GANGER_WORLD_SIZE"], env["GANGER_ATTEMPT"]) == ("0", "2", "1")
    assert env["GANGER_MARK"] == job.folder.job_id
    assert 10_000 <= int(env["ADDRESS"].rpartition(":")[2]) < 65_536
    assert (env["stdin"], env["sid"]) == ("", env["pid"])
    assert not [name for name in env if "AIRFLOW" in name or name == "MLFLOW_TRACKING_PASSWORD"]


def test_a_crash_by_signal_is_restarted(job: Job) -> None:
    program = "ready()\nif attempt == 1: os.kill(os.getpid(), signal.SIGKILL)\nsay(f'attempt {attempt} works')"
    result = job.run(job.plan(toy(program), limits={"restarts": 1}))
    assert (result.state, result.attempts) == (JobState.SUCCEEDED, 2)
    assert "[rank 0] attempt 2 works" in job.merged


def test_a_taken_port_heals_with_fresh_ones(job: Job) -> None:
    """K04."""
    program = """
sys.path.append(os.__file__.rpartition("/")[0] + "/lib-dynload")  # -S leaves it out
import socket
port = int(os.environ["PORT"])
if attempt == 1:
    holder = socket.socket(); holder.bind(("127.0.0.1", port)); holder.listen()
server = socket.socket(); server.bind(("127.0.0.1", port)); ready(); say(f"bound {port}")
"""
    plan = job.plan(toy(program), ports=("p",))
    process = plan.processes[0].model_copy(update={"env": {"PORT": "{port:p}"}})
    result = job.run(plan.model_copy(update={"processes": (process,)}))
    assert (result.state, result.attempts) == (JobState.SUCCEEDED, 2)
    assert "port taken: restart 1 of 3" in job.merged


def test_cancelling_reaches_ranks_that_ignore_sigterm(job: Job) -> None:
    """K16, K17."""
    job.start(job.plan(STUBBORN, STUBBORN))
    job.wait_for_text(r"stubborn[\s\S]*stubborn")
    pids = [rank.pid for rank in job.status.ranks]
    began = time.monotonic()
    result = job.follow(should_stop=lambda: True)
    assert result.state is JobState.CANCELLED
    assert time.monotonic() - began < 3
    assert all(pid is not None and is_gone(pid) for pid in pids)


def test_the_total_timeout_ends_everything(job: Job) -> None:
    """K17."""
    result = job.run(job.plan(STUBBORN, limits={"timeout_s": 0.8, "restarts": 5}))
    assert (result.state, result.attempts) == (JobState.FAILED, 1)
    assert "must end within 0.8 s" in _headline(result).message


def test_a_late_rank_has_its_grace_and_then_fails_the_job(job: Job) -> None:
    """K20: the log shows the grace period; one who keeps to it is a success."""
    slow = toy("ready(); time.sleep(0.6)")
    assert job.run(job.plan(ENDS, slow)).state is JobState.SUCCEEDED
    assert "done: rank 0 (worker); rank 1 (worker) may go on for 5 s" in job.merged
    late = Job(JobFolder(job.folder.path.with_name("late")))
    headline = _headline(late.run(late.plan(ENDS, WORKS, limits={"finish_grace_s": 0.5})))
    assert (headline.rank, headline.kind) == (1, "InfrastructureError")
    assert headline.message == "it still ran 0.5 s after the first rank had ended"


def test_a_secret_is_in_no_file_and_on_no_command_line(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    """K18: a password, a cloud key, a token, and one in an address; the rank prints them all and fails."""
    secret = f"s3cr3t-{os.getpid()}-{time.monotonic_ns()}"  # other tests on this machine have theirs
    secrets = {
        "MLFLOW_TRACKING_PASSWORD": secret,
        "AWS_SECRET_ACCESS_KEY": secret,
        "MY_TOKEN": secret,
        "MLFLOW_TRACKING_URI": f"http://ada:{secret}@127.0.0.1:1/",
    }
    for name, value in secrets.items():
        monkeypatch.setenv(name, value)
    told = "print(*os.environ.items(), sep='\\n', flush=True)"  # a line each: long ones are cut in the log
    program = f"ready(); {told}; time.sleep(0.5); raise ValueError(os.environ['MY_TOKEN'])"
    job.start(job.plan(toy(program)))
    job.wait_for_text("MY_TOKEN")
    command_lines = _read_command_lines()
    assert {job.supervisor.pid, *(rank.pid for rank in job.status.ranks)} <= command_lines.keys()
    assert not [pid for pid, line in command_lines.items() if secret.encode() in line]
    job.follow()
    files = [path for path in job.folder.path.rglob("*") if path.is_file()]
    assert len(files) >= 8
    assert not [path for path in files if secret.encode() in path.read_bytes()]


def _read_command_lines() -> dict[int, bytes]:
    lines = {}
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            lines[int(path.parent.name)] = path.read_bytes()
    return lines
