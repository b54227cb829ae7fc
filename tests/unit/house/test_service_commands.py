import json
import socket
from pathlib import Path

import psutil
import pytest

from training.errors import InfrastructureError, LaunchError, PreflightError
from training.serve.commands import (
    ServiceAddresses,
    make_airflow_environment,
    render_airflow_commands,
    render_mlflow_command,
)
from training.serve.health import is_airflow_well, read_tail, wait_until_well
from training.serve.port import choose_port, is_free
from training.serve.record import ServiceRef, Services, ServicesFolder
from training.serve.secrets import read_or_make_secrets
from training.serve.start import read_services, start_services

ADDRESSES = ServiceAddresses(airflow_port=18080, mlflow_port=15000)


@pytest.fixture
def taken():
    """A port that this process listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def test_a_wanted_port_that_is_taken_is_one_sentence_with_the_holder(taken):
    """K04."""
    with pytest.raises(PreflightError) as caught:
        choose_port("Airflow", 8080, taken)

    sentence = str(caught.value)
    assert f"port {taken} of 127.0.0.1" in sentence
    assert f"pid {psutil.Process().pid}" in sentence
    assert "\n" not in sentence


def test_without_a_wish_the_next_free_port_is_taken(taken):
    """K04."""
    port = choose_port("Airflow", taken)

    assert taken < port <= taken + 99
    assert is_free(port)


def test_a_free_wish_is_kept():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]

    assert choose_port("Airflow", 8080, port) == port


def test_a_busy_port_ends_a_start_before_anything_is_started(taken, tmp_path):
    with pytest.raises(PreflightError, match="MLflow needs port"):
        start_services(tmp_path, mlflow_port=taken, log=lambda line: None)

    assert not (tmp_path / "services" / "services.json").exists()


def test_airflow_and_its_tasks_find_each_other_and_mlflow(tmp_path):
    env = make_airflow_environment(ServicesFolder(tmp_path), ADDRESSES, {}, {"PATH": "/usr/bin"}, Path("/venv/bin"))

    assert env["AIRFLOW__API__PORT"] == "18080"
    assert env["AIRFLOW__CORE__EXECUTION_API_SERVER_URL"] == "http://127.0.0.1:18080/execution/"
    assert env["MLFLOW_TRACKING_URI"] == "http://127.0.0.1:15000"
    assert env["GANGER_HOME"] == str(tmp_path)
    assert env["PATH"] == "/venv/bin:/usr/bin"
    assert Path(env["AIRFLOW_CONFIG"]).exists()
    assert Path(env["AIRFLOW__CORE__DAGS_FOLDER"]).is_dir()
    assert Path(env["AIRFLOW__CORE__PLUGINS_FOLDER"]).is_dir()


def test_secrets_are_made_once_and_are_on_no_command_line(tmp_path):
    """K18."""
    path = tmp_path / "services" / "secrets.json"
    secrets = read_or_make_secrets(path)
    env = make_airflow_environment(ServicesFolder(tmp_path), ADDRESSES, secrets, {}, Path("/venv/bin"))
    commands = [
        *render_airflow_commands(Path("/venv/bin"), env, 18080),
        render_mlflow_command(Path("/venv/bin"), tmp_path, {}, 15000),
    ]

    assert path.stat().st_mode & 0o777 == 0o600
    assert read_or_make_secrets(path) == secrets
    assert len(set(secrets.values())) == 3
    words = {word for command in commands for word in command.argv}
    assert not words & set(secrets.values())


def test_servers_listen_on_loopback_only(tmp_path):
    commands = [
        *render_airflow_commands(Path("/venv/bin"), {}, 18080),
        render_mlflow_command(Path("/venv/bin"), tmp_path, {}, 15000),
    ]
    listening = [command.argv for command in commands if "--port" in command.argv]

    assert len(listening) == 2
    assert all(argv[argv.index("--host") + 1] == "127.0.0.1" for argv in listening)


def test_mlflow_does_not_track_into_itself(tmp_path):
    command = render_mlflow_command(Path("/venv/bin"), tmp_path, {"MLFLOW_TRACKING_URI": "http://other.test"}, 15000)

    assert "MLFLOW_TRACKING_URI" not in command.env
    assert command.env["MLFLOW_SERVER_ENABLE_JOB_EXECUTION"] == "false"


@pytest.mark.parametrize(
    ("sick", "well"),
    [(None, True), ("scheduler", False), ("dag_processor", False), ("metadatabase", False), ("triggerer", True)],
)
def test_airflow_is_well_when_all_that_a_run_needs_is(sick, well):
    parts = ("metadatabase", "scheduler", "dag_processor", "triggerer")
    health = {part: {"status": "unhealthy" if part == sick else "healthy"} for part in parts}

    assert is_airflow_well(json.dumps(health).encode()) is well


def test_an_airflow_that_does_not_answer_is_not_well():
    assert not is_airflow_well(None)


def test_a_process_that_died_while_starting_is_reported_with_the_end_of_its_log(tmp_path):
    log = tmp_path / "mlflow.log"
    log.write_text("".join(f"line {number}\n" for number in range(100)))
    dead = ServiceRef(name="mlflow", pid=psutil.Process().pid, started_at=1.0, log=str(log))
    services = Services(airflow_url="http://127.0.0.1:9", mlflow_url="http://127.0.0.1:9", processes=(dead,))

    with pytest.raises(LaunchError, match=r"mlflow died while it started[^$]*line 99"):
        wait_until_well(services, timeout_s=10, log=print)


def test_services_that_never_answer_end_the_wait_with_the_logs_to_look_at():
    services = Services(
        airflow_url="http://127.0.0.1:9", mlflow_url="http://127.0.0.1:9", processes=(own_process("mlflow"),)
    )
    ticks = iter([0.0, 61.0])

    with pytest.raises(InfrastructureError, match=r"Airflow and MLflow must answer within 60 s .* See mlflow\.log"):
        wait_until_well(services, timeout_s=60, log=print, clock=lambda: next(ticks))


def own_process(name):
    process = psutil.Process()
    return ServiceRef(name=name, pid=process.pid, started_at=process.create_time(), log=f"{name}.log")


def test_another_process_with_the_same_pid_is_not_the_service():
    """K16: a pid alone names nobody."""
    ref = own_process("mlflow")

    assert ref.find_process() is not None
    assert ref.model_copy(update={"started_at": ref.started_at - 100}).find_process() is None


def test_services_count_as_running_only_when_all_processes_live(tmp_path):
    folder = ServicesFolder(tmp_path)
    alive = own_process("mlflow")
    dead = alive.model_copy(update={"name": "airflow-scheduler", "started_at": 1.0})
    services = Services(airflow_url="http://a", mlflow_url="http://m", processes=(alive,))

    assert read_services(tmp_path) is None
    services.write(folder.record)
    assert read_services(tmp_path) == services
    services.model_copy(update={"processes": (alive, dead)}).write(folder.record)
    assert read_services(tmp_path) is None


def test_asking_running_services_for_another_port_is_refused(tmp_path):
    services = Services(airflow_url="http://127.0.0.1:8080", mlflow_url="http://m", processes=(own_process("mlflow"),))
    services.write(ServicesFolder(tmp_path).record)

    with pytest.raises(PreflightError, match=r"Airflow already runs at http://127\.0\.0\.1:8080 .* make stop"):
        start_services(tmp_path, airflow_port=9, log=print)


def test_the_tail_of_a_log_is_its_last_lines(tmp_path):
    (tmp_path / "log").write_bytes(b"a\nb\nc\xff\n")

    assert read_tail(tmp_path / "log", lines=2) == "b\nc\ufffd"
    assert read_tail(tmp_path / "none") == "(no log)"
