"""Signals to ranks."""

from __future__ import annotations

import signal

from tests.chaos.fault import Kind
from tests.chaos.injections.injection import Injection
from tests.chaos.trial import Trial


def kill(trial: Trial) -> None:
    """Kill the rank."""
    trial.wait_for(trial.fault.moment)
    trial.kill_rank()


def _kill_twice(trial: Trial) -> None:
    kill(trial)
    trial.wait_for(trial.fault.second)
    trial.kill_rank()


def _crash(trial: Trial) -> None:
    trial.wait_for(trial.fault.moment)
    trial.kill_rank(signal.SIGSEGV)


def _stop(trial: Trial) -> None:
    trial.wait_for(trial.fault.moment)
    trial.kill_rank(signal.SIGSTOP, timed=False)  # noticed after stall_timeout_s, as it should be


RANKS: dict[Kind, Injection] = {
    Kind.RANK_KILLED: Injection(act=kill),
    Kind.RANK_KILLED_AGAIN: Injection(act=_kill_twice),
    Kind.RANK_KILLED_FOR_GOOD: Injection(act=kill, options={"restarts": 0}),
    Kind.RANK_CRASHED: Injection(act=_crash),
    # Long enough for the first step, which compiles, on a busy machine.
    Kind.RANK_STOPPED: Injection(act=_stop, options={"stall_timeout_s": 15}),
}
