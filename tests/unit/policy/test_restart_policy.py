"""Whether, and when, a gang is started again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.policy.failure import Cause
from training.policy.restart import RESTARTABLE, Action, PastFailure, RestartPolicy

CAUSES = st.sampled_from(Cause)


def _failed(cause: Cause, at: float = 0.0) -> PastFailure:
    return PastFailure(cause=cause, at=at)


@pytest.mark.parametrize("cause", sorted(set(Cause) - RESTARTABLE))
def test_what_would_fail_the_same_way_is_not_restarted(cause: Cause) -> None:
    """K17."""
    decision = RestartPolicy(restarts=9).decide(_failed(cause), [], now=0.0)
    assert decision.action is Action.FAIL
    assert "a restart would meet the same" in decision.reason


def test_pauses_grow_and_count_from_the_failure() -> None:
    policy = RestartPolicy(restarts=9, backoff_s=1.0, backoff_max_s=5.0)
    history: list[PastFailure] = []
    pauses = []
    for _ in range(5):
        pauses.append(policy.decide(_failed(Cause.SIGNAL, at=10.0), history, now=10.0).delay_s)
        history.append(_failed(Cause.SIGNAL))
    assert pauses == [1.0, 2.0, 4.0, 5.0, 5.0]
    assert policy.decide(_failed(Cause.SIGNAL, at=10.0), history[:1], now=11.5).delay_s == 0.5
    assert policy.decide(_failed(Cause.SIGNAL, at=10.0), [], now=60.0).delay_s == 0.0


def test_taken_ports_have_a_budget_of_their_own() -> None:
    """K04."""
    policy = RestartPolicy(restarts=1, port_retries=2)
    ports = [_failed(Cause.PORT_TAKEN)] * 2
    assert policy.decide(_failed(Cause.PORT_TAKEN), ports, now=0.0).action is Action.FAIL
    assert policy.decide(_failed(Cause.SIGNAL), ports, now=0.0).action is Action.RESTART
    assert policy.decide(_failed(Cause.PORT_TAKEN), [_failed(Cause.SIGNAL)], now=0.0).delay_s == 0.0


@given(causes=st.lists(CAUSES, max_size=30), restarts=st.integers(0, 5), ports=st.integers(0, 5))
def test_there_are_never_more_restarts_than_both_budgets(causes: list[Cause], restarts: int, ports: int) -> None:
    policy = RestartPolicy(restarts=restarts, port_retries=ports)
    history: list[PastFailure] = []
    for cause in causes:
        failure = _failed(cause)
        if policy.decide(failure, history, now=0.0).action is Action.FAIL:
            break
        history.append(failure)
    assert len(history) <= restarts + ports
