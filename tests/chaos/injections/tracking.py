"""The MLflow server is killed, and comes back at its address."""

from __future__ import annotations

import subprocess

from tests.chaos.command import GANGER
from tests.chaos.fault import Fault, Kind
from tests.chaos.injections.injection import Injection
from tests.chaos.trial import Trial


def _kill_server(trial: Trial) -> None:
    trial.wait_for(trial.fault.moment)
    trial.site.server.kill()


def _bring_back(trial: Trial) -> None:
    trial.wait_for(trial.fault.second)
    trial.site.server.launch()
    trial.site.server.wait()


def _kill_server_for_a_while(trial: Trial) -> None:
    _kill_server(trial)
    _bring_back(trial)


def _kill_server_and_rank(trial: Trial) -> None:
    _kill_server(trial)
    trial.kill_rank()
    _bring_back(trial)


def _bring_back_and_tear_down(trial: Trial) -> None:
    """Bring the server back, and do what an Airflow teardown does: it sends what is spooled and closes the run."""
    trial.site.server.launch()
    trial.site.server.wait()
    command = [GANGER, "stop", trial.run.folder.run_id]
    subprocess.run(command, env=trial.env, capture_output=True, check=True, timeout=120)


def _slowly(fault: Fault) -> dict[str, str]:
    """Return what makes the training last until the server, which needs some 15 s to start, is back."""
    return {"CHAOS_STEP_S": "0.4"}


TRACKING: dict[Kind, Injection] = {
    Kind.SERVER_AWAY: Injection(act=_kill_server_for_a_while, render_env=_slowly),
    Kind.SERVER_AWAY_RANK_KILLED: Injection(act=_kill_server_and_rank, render_env=_slowly),
    Kind.SERVER_GONE: Injection(act=_kill_server, mend=_bring_back_and_tear_down),
}
