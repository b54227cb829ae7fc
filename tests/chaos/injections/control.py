"""What watches over a gang is killed, or told to end it."""

from __future__ import annotations

import signal
import subprocess
import time

from tests.chaos.command import GANGER
from tests.chaos.drawing import TOTAL_STEPS
from tests.chaos.fault import Fault, Kind
from tests.chaos.injections.injection import Injection
from tests.chaos.trial import Trial

#: `ganger run` leaves a gang that nobody follows 60 s.
LEASE_S = 60.0
#: See `user_files/slow_mlp.py`.
SLOW_AFTER = "CHAOS_SLOW_AFTER"
_LIMIT_S = 120.0


def _kill_supervisor(trial: Trial) -> None:
    trial.wait_for(trial.fault.moment)
    trial.kill_supervisor()


def _kill_task(trial: Trial) -> None:
    trial.wait_for(trial.fault.moment)
    trial.command.signal(signal.SIGKILL)


def _kill_airflow_task(trial: Trial) -> None:
    trial.wait_for(trial.fault.moment)
    trial.site.start_airflow().kill_task()


def _kill_task_and_rank(trial: Trial) -> None:
    _kill_task(trial)
    trial.wait_for(trial.fault.second)
    trial.kill_rank()


def _await_lease(trial: Trial) -> None:
    """Wait until the supervisor has ended the gang that nobody follows; whoever resumes it then need not be slow."""
    end = time.monotonic() + LEASE_S + _LIMIT_S
    while not trial.run.train.result.exists() and time.monotonic() < end:
        time.sleep(0.1)
    del trial.env[SLOW_AFTER]


def _interrupt(trial: Trial) -> None:
    trial.wait_for(trial.fault.moment)
    trial.command.signal(signal.SIGINT)


def _stop(trial: Trial) -> None:
    trial.wait_for(trial.fault.moment)
    command = [GANGER, "stop", trial.run.folder.run_id]
    subprocess.run(command, env=trial.env, capture_output=True, check=True, timeout=_LIMIT_S)


def _slow_after(fault: Fault) -> dict[str, str]:
    """Return what makes the training outlast the lease, from the fault on."""
    return {SLOW_AFTER: f"{fault.moment.step} {2 * LEASE_S / (TOTAL_STEPS - fault.moment.step):.2f}"}


CONTROL: dict[Kind, Injection] = {
    Kind.SUPERVISOR_KILLED: Injection(act=_kill_supervisor),
    Kind.TASK_KILLED: Injection(act=_kill_task),
    Kind.TASK_AND_RANK_KILLED: Injection(act=_kill_task_and_rank),
    Kind.TASK_ABANDONED: Injection(act=_kill_task, mend=_await_lease, render_env=_slow_after),
    Kind.AIRFLOW_TASK_KILLED: Injection(act=_kill_airflow_task),
    Kind.INTERRUPTED: Injection(act=_interrupt),
    Kind.STOPPED: Injection(act=_stop),
}
