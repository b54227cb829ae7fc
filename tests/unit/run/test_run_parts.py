"""The small parts around a supervised job: leases, tails, outputs, secrets, results as errors, ports, environments."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from training.errors import (
    CancelledError,
    DivergedError,
    GangerError,
    InfrastructureError,
    LaunchError,
    SpecError,
)
from training.launch.api import LaunchOrder
from training.launch.environment import render_argv, render_rank_environment
from training.launch.ports import claim_ports
from training.plan.job import JobPlan, ProcessPlan
from training.run.event import Checkpoint, Done, Epoch, Event, Failure, Heartbeat, Model, Ready, Step
from training.run.folder import RunFolder
from training.run.follow import raise_for
from training.run.job import FailureHeadline, JobResult, JobState
from training.run.narrate import narrate
from training.run.outputs import find_missing_outputs
from training.run.outside import LeaseWatch, Outside, read_outside
from training.run.redact import Redactor, find_secrets
from training.run.tail import LogTail, read_last_lines


class TestLease:
    def test_it_expires_when_its_stamp_stands_still(self) -> None:
        lease = LeaseWatch(10.0, now=0.0)
        assert [lease.is_expired(5.0, now) for now in (1.0, 5.0, 9.0, 10.9, 11.0)] == [False] * 4 + [True]

    def test_each_renewal_counts_from_when_it_was_seen(self) -> None:
        lease = LeaseWatch(10.0, now=0.0)
        assert not any(lease.is_expired(stamp, now=float(4 * stamp)) for stamp in range(20))

    def test_a_pause_of_the_supervisor_is_not_held_against_the_follower(self) -> None:
        lease = LeaseWatch(10.0, now=0.0)
        lease.is_expired(1.0, now=1.0)
        assert not lease.is_expired(1.0, now=3_000.0)
        assert not lease.is_expired(2.0, now=3_001.0)

    def test_the_outside_is_read_from_the_folder(self, tmp_path: Path) -> None:
        folder = RunFolder.of("run", tmp_path).job("train")
        assert read_outside(folder) == Outside()
        folder.path.mkdir(parents=True)
        folder.cancel.touch()
        folder.lease.touch()
        assert read_outside(folder) == Outside(cancel="no reason was given", lease=folder.lease.stat().st_mtime)


class TestTail:
    def test_lines_come_whole_and_once(self, tmp_path: Path) -> None:
        log = tmp_path / "log"
        tail = LogTail(log)
        assert tail.read() == []
        log.write_bytes(b"one\ntw")
        assert tail.read() == ["one"]
        with log.open("ab") as stream:
            stream.write(b"o\n\xff\nrest")
        assert tail.read() == ["two", "\N{REPLACEMENT CHARACTER}"]
        assert (tail.read(to_end=True), tail.read(to_end=True)) == (["rest"], [])

    def test_it_begins_where_it_is_told(self, tmp_path: Path) -> None:
        log = tmp_path / "log"
        log.write_text("one\ntwo\n")
        assert LogTail(log, offset=4).read() == ["two"]

    def test_last_lines(self, tmp_path: Path) -> None:
        log = tmp_path / "log"
        assert read_last_lines(log, 2) == ""
        log.write_text("".join(f"{number}\n" for number in range(50_000)))
        assert read_last_lines(log, 2) == "49998\n49999"


class TestOutputs:
    def test_a_folder_is_as_new_as_its_newest_file(self, tmp_path: Path) -> None:
        """K15."""
        folder = tmp_path / "model"
        folder.mkdir()
        (folder / "weights").touch()
        os.utime(folder, (10.0, 10.0))
        os.utime(folder / "weights", (20.0, 20.0))
        assert find_missing_outputs([str(folder)], since=20.0) == []
        assert find_missing_outputs([str(folder)], since=25.0) == [f"{folder} is older than the job, by 5.0 s"]

    def test_what_is_missing_is_named(self, tmp_path: Path) -> None:
        assert find_missing_outputs([str(tmp_path / "x")], since=0.0) == [f"{tmp_path / 'x'} is missing"]


class TestSecrets:
    """K18."""

    def test_they_are_known_by_the_names_of_their_variables_and_in_addresses(self) -> None:
        environ = {
            "MLFLOW_TRACKING_PASSWORD": "pass-word",
            "AWS_SECRET_ACCESS_KEY": "cloud-key",
            "MY_API_KEY": "own-key",
            "URI": "postgresql://ada:in-address@host/db",
            "SSH_PRIVATE_FILE": "/home/ada/.ssh/id",
            "TOKENIZERS_PARALLELISM": "true",
            "HOME": "/home/ada",
        }
        assert find_secrets(environ) == {"pass-word", "cloud-key", "own-key", "in-address"}

    @pytest.mark.parametrize(
        "name",
        [
            "DB_PASS",
            "MYSQL_PWD",
            "STRIPE_KEY",
            "STRIPE_KEY_LIVE",
            "HF_AUTH",
            "PGPASSWORD",
            "AWS_CREDENTIALS",
            "db_pass",
        ],
    )
    @pytest.mark.parametrize(
        "value", ["/s3cr3t/no+such==", "~nobody-of-that-name/x", ".s3cr3t", "pa55", "/" + "x" * 300]
    )
    def test_names_and_values_that_are_secrets(self, name: str, value: str) -> None:
        assert find_secrets({name: value}) == {value}

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("PWD", "/no/such"),
            ("OLDPWD", "/no/such"),
            ("SSH_AUTH_SOCK", "/no/such/agent"),
            ("SSL_KEY_FILE", "/no/such/key.pem"),
            ("GOOGLE_APPLICATION_CREDENTIALS", __file__),
            ("PASSENGER_ROOT", "anything"),
            ("KEYBOARD_LAYOUT", "qwertz"),
            ("COMPASS_URL", "anything"),
            ("AUTHOR", "somebody"),
            ("GIT_CONFIG_KEY_0", "safe.directory"),
            ("AIRFLOW__CORE__AUTH_MANAGER", "a.b.SimpleAuthManager"),
            ("TOKENIZERS_PARALLELISM", "false"),
            ("USE_AUTH", "True"),
            ("MAX_TOKENS", "4096"),
            ("DB_PASS", "abc"),
        ],
    )
    def test_names_and_values_that_are_none(self, name: str, value: str) -> None:
        assert find_secrets({name: value}) == set()

    def test_each_line_of_a_longer_secret_is_masked(self) -> None:
        redactor = Redactor({"TLS_KEY": "-----BEGIN-----\nMIIEvQ\r\n  IBADAN\n}\n"})
        assert [redactor.text(line) for line in ("a MIIEvQ", "IBADAN b", "} c")] == ["a ***", "*** b", "} c"]

    def test_short_secrets_are_masked_as_whole_words(self) -> None:
        redactor = Redactor({"DB_PASS": "data"})
        assert redactor.text("dataset, user:data@host") == "dataset, user:***@host"
        assert redactor.bytes(b"database data") == b"database ***"

    def test_the_longest_is_masked_first(self) -> None:
        redactor = Redactor({"A_TOKEN": "secret", "B_TOKEN": "secret-and-more"})
        assert redactor.text("secret-and-more, secret") == "***, ***"
        assert redactor.bytes(b"\xff secret") == b"\xff ***"

    def test_nothing_changes_without_secrets(self) -> None:
        event = Failure(rank=0, error="E", message="m", exit_code=1)
        redactor = Redactor({})
        assert (redactor.text("x"), redactor.bytes(b"x"), redactor.event(event)) == ("x", b"x", event)


class TestRaising:
    @pytest.mark.parametrize(
        ("kind", "error_class"),
        [
            ("DivergedError", DivergedError),
            ("SpecError", SpecError),
            ("InfrastructureError", InfrastructureError),
            ("NoSuchError", GangerError),
        ],
    )
    def test_the_kind_names_the_class(self, kind: str, error_class: type[GangerError]) -> None:
        failure = FailureHeadline(
            rank=1, name="rank 1 (worker)", host="n1", kind=kind, message="boom", step=3, detail="trace\nlast\n"
        )
        with pytest.raises(error_class) as caught:
            raise_for(JobResult(state=JobState.FAILED, started_at=0, ended_at=1, failure=failure))
        assert str(caught.value) == "rank 1 (worker) on n1 failed at step 3: boom\ntrace\nlast"

    def test_a_cancelled_job(self) -> None:
        failure = FailureHeadline(kind="CancelledError", message="cancelled: enough")
        with pytest.raises(CancelledError, match=r"^cancelled: enough$"):
            raise_for(JobResult(state=JobState.CANCELLED, started_at=0, ended_at=1, failure=failure))

    def test_a_success_raises_nothing(self) -> None:
        raise_for(JobResult(state=JobState.SUCCEEDED, started_at=0, ended_at=1))


class TestPorts:
    """K04."""

    def test_they_differ_and_can_be_bound(self) -> None:
        claim = claim_ports(["a", "b", "c"])
        try:
            assert len(set(claim.ports.values())) == 3
            for port in claim.ports.values():
                with socket.socket() as server:
                    server.bind(("127.0.0.1", port))
        finally:
            claim.release()

    def test_one_that_is_taken_or_claimed_is_not_chosen(self, monkeypatch: pytest.MonkeyPatch) -> None:
        first = claim_ports(["a"])
        port = first.ports["a"]
        monkeypatch.setattr("training.launch.ports.random.randrange", lambda *_: port)
        try:
            with pytest.raises(LaunchError, match="a free port"):
                claim_ports(["b"])
        finally:
            first.release()
        with socket.socket() as server:
            server.bind(("127.0.0.1", port))
            server.listen()
            with pytest.raises(LaunchError, match="a free port"):
                claim_ports(["b"])

    def test_one_with_connections_that_wait_for_their_end_is_not_chosen(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """K04: a gang that ended a moment ago leaves such ports; a server without SO_REUSEADDR cannot bind them."""
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            with socket.create_connection(("127.0.0.1", port)):
                server.accept()[0].close()  # who closes first waits
        monkeypatch.setattr("training.launch.ports.random.randrange", lambda *_: port)
        with pytest.raises(LaunchError, match="a free port"):
            claim_ports(["a"])


class TestEnvironment:
    def _order(self, *processes: ProcessPlan) -> LaunchOrder:
        plan = JobPlan(run_id="run", name="job", processes=processes)
        return LaunchOrder(plan=plan, folder=Path("/job"), mark="run/job", env={"MLFLOW_RUN_ID": "abc"})

    def test_services_are_no_part_of_the_world(self) -> None:
        worker, server = ProcessPlan(rank=0, argv=("x",)), ProcessPlan(rank=1, argv=("x",), service=True)
        env = render_rank_environment(self._order(worker, server), worker, {}, {})
        assert (env["GANGER_WORLD_SIZE"], env["MLFLOW_RUN_ID"]) == ("1", "abc")

    def test_only_who_tracks_keeps_the_credentials(self) -> None:
        """K18."""
        inherited = {"MLFLOW_TRACKING_TOKEN": "x", "AIRFLOW_CONN_DB": "y"}
        for tracks in (False, True):
            process = ProcessPlan(rank=0, argv=("x",), tracks=tracks)
            env = render_rank_environment(self._order(process), process, inherited, {})
            assert ("MLFLOW_TRACKING_TOKEN" in env) is tracks
            assert "AIRFLOW_CONN_DB" not in env

    def test_a_port_that_the_plan_does_not_name_is_refused(self) -> None:
        process = ProcessPlan(rank=0, argv=("x", "--port={port:chief}"))
        assert render_argv(process, {"chief": 7}) == ["x", "--port=7"]
        with pytest.raises(LaunchError, match="Received: 'chief'; named: \\['other'\\]"):
            render_argv(process, {"other": 7})

    def test_braces_of_json_are_left_alone(self) -> None:
        process = ProcessPlan(rank=0, argv=("x",), env={"TF_CONFIG": '{"cluster": {"worker": ["h:{port:rank-0}"]}}'})
        env = render_rank_environment(self._order(process), process, {}, {"rank-0": 7})
        assert env["TF_CONFIG"] == '{"cluster": {"worker": ["h:7"]}}'


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (Ready(rank=0, pid=1), "ready"),
        (
            Ready(rank=0, pid=1, threads=2, devices=("CPU:0",), replicas=2, versions={"keras": "3.15.1"}),
            "ready  2 threads  CPU:0  2 replicas  keras 3.15.1",
        ),
        (
            Epoch(rank=0, epoch=2, epochs=5, step=44, metrics={"loss": 0.41, "val_loss": 0.5}, seconds=1.25),
            "epoch 2/5  step 44  loss 0.41  val_loss 0.5  1.2 s",
        ),
        (Checkpoint(rank=0, step=4, path="/c"), "checkpoint of step 4: /c"),
        (Model(rank=0, path="/m"), "model saved: /m"),
        (Heartbeat(rank=0, doing="saving"), "saving"),
        (Heartbeat(rank=0), None),
        (Done(rank=0), None),
        (Step(rank=0, step=1, epoch=1), None),
    ],
)
def test_what_a_person_reads_of_an_event(event: Event, line: str | None) -> None:
    assert narrate(event) == line
