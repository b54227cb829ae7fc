"""Ending services whose processes take no hint, with real process trees."""

import os
import subprocess
import sys
import time

import psutil
import pytest

from training.serve import Services, stop_services
from training.serve.record import ServiceRef, ServicesFolder
from training.serve.stop import walk_tree

OBEDIENT = "import time; time.sleep(600)"
#: Ignores SIGTERM, and has a child that does so, too.
STUBBORN = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    time.sleep(600)
print("ready", flush=True)
time.sleep(600)
"""
#: Starts what looks like the supervisor of a job: a session of its own, by the name that supervisors have.
LEADS_A_JOB = """
import subprocess, sys, time
job = [sys.executable, "-c", "import time; time.sleep(600)", "-m", "training.run.supervisor", "job"]
print(subprocess.Popen(job, start_new_session=True).pid, flush=True)
time.sleep(600)
"""
#: Leaves a child in its session and ends.
ORPHANING = """
import subprocess, sys
print(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]).pid, flush=True)
"""


@pytest.fixture
def start(tmp_path):
    """Starts a program as a service of `tmp_path` and returns the process, after its first line where it prints one."""
    folder, started = ServicesFolder(tmp_path), []

    def start_service(name, program, talks=True):
        command = [sys.executable, "-c", program]
        process = subprocess.Popen(command, start_new_session=True, stdout=subprocess.PIPE, text=True)
        started.append(process)
        ref = ServiceRef(name=name, pid=process.pid, started_at=psutil.Process(process.pid).create_time(), log="log")
        services = Services.read(folder.record) or Services(airflow_url="http://a", mlflow_url="http://m")
        services.model_copy(update={"processes": (*services.processes, ref)}).write(folder.record)
        return process, process.stdout.readline().strip() if talks else ""

    yield start_service
    for process in started:
        process.stdout.close()
        process.kill()
        process.wait(10)


def members(session):
    found = []
    for pid in psutil.pids():
        try:
            if os.getsid(pid) == session and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
                found.append(pid)
        except (ProcessLookupError, psutil.NoSuchProcess):
            continue
    return found


def test_all_processes_of_all_services_end_and_the_record_goes(start, tmp_path):
    """K16."""
    obedient, _ = start("mlflow", OBEDIENT, talks=False)
    stubborn, _ = start("airflow-scheduler", STUBBORN)

    stopped = stop_services(tmp_path, grace_s=0.5)

    assert stopped == ["mlflow", "airflow-scheduler"]
    assert members(obedient.pid) == members(stubborn.pid) == []
    assert not (tmp_path / "services" / "services.json").exists()


def test_stopping_twice_does_nothing_the_second_time(start, tmp_path):
    start("mlflow", OBEDIENT, talks=False)

    assert stop_services(tmp_path, grace_s=5) == ["mlflow"]
    assert stop_services(tmp_path) == []


def test_what_a_dead_service_left_in_its_session_is_ended(start, tmp_path):
    """K16."""
    service, orphan = start("airflow-api-server", ORPHANING)
    service.wait(10)
    assert members(service.pid) == [int(orphan)]

    assert stop_services(tmp_path, grace_s=1) == []

    assert members(service.pid) == []


def test_the_supervisor_of_a_job_outlives_airflow(start, tmp_path):
    _, pid = start("airflow-scheduler", LEADS_A_JOB)
    supervisor = psutil.Process(int(pid))
    try:
        stop_services(tmp_path, grace_s=1)

        assert supervisor.status() != psutil.STATUS_ZOMBIE
        assert list(walk_tree(supervisor)) == []
    finally:
        supervisor.kill()


def test_a_process_that_got_the_pid_of_a_dead_service_is_left_alone(start, tmp_path):
    """K16: never by pid alone."""
    stranger, _ = start("mlflow", OBEDIENT, talks=False)
    folder = ServicesFolder(tmp_path)
    services = Services.read(folder.record)
    other = services.processes[0].model_copy(update={"started_at": time.time() - 1000})
    services.model_copy(update={"processes": (other,)}).write(folder.record)

    assert stop_services(tmp_path, grace_s=1) == []

    assert stranger.poll() is None
