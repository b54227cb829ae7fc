"""Whether, and when, a gang is started again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.policy.failure import Cause
from training.policy.restart import BUDGETS, Action, Budget, PastFailure, RestartPolicy

CAUSES = st.sampled_from(Cause)


def _failed(cause: Cause, at: float = 0.0) -> PastFailure:
    return PastFailure(cause=cause, at=at)


def test_every_cause_has_a_budget() -> None:
    assert set(BUDGETS) == set(Cause)


def test_what_would_fail_the_same_way_or_was_wanted_has_none() -> None:
    never = {cause for cause, budget in BUDGETS.items() if budget is Budget.NEVER}
    assert never == {Cause.SPEC, Cause.PREFLIGHT, Cause.DIVERGED, Cause.TIMEOUT, Cause.CANCELLED}


@pytest.mark.parametrize("cause", Cause)
def test_a_cause_is_restarted_as_often_as_its_own_budget_says(cause: Cause) -> None:
    """K17: what may heal is restarted, and only that; failures on another budget do not count."""
    policy = RestartPolicy(restarts=2, user_restarts=1, port_retries=3)
    budget = BUDGETS[cause]
    others = [_failed(other) for other in Cause if BUDGETS[other] is not budget]
    for used in range(policy.allowed(budget)):
        decision = policy.decide(_failed(cause), [*others, *[_failed(cause)] * used], now=0.0)
        assert decision.action is Action.RESTART
        assert decision.reason == f"{cause}: restart {used + 1} of {policy.allowed(budget)} ({budget})"
    end = policy.decide(_failed(cause), [*others, *[_failed(cause)] * policy.allowed(budget)], now=0.0)
    assert end.action is Action.FAIL
    if budget is Budget.NEVER:
        assert end.reason == f"{cause}: a restart would meet the same"
    else:
        assert end.reason == f"{cause}: all of {policy.allowed(budget)} restarts are used ({budget})"


@pytest.mark.parametrize("cause", [cause for cause in Cause if BUDGETS[cause] in (Budget.USER, Budget.INFRASTRUCTURE)])
def test_an_empty_budget_allows_no_restart(cause: Cause) -> None:
    decision = RestartPolicy().decide(_failed(cause), [], now=0.0)
    assert (decision.action, decision.reason) == (Action.FAIL, f"{cause}: no restart is allowed ({BUDGETS[cause]})")


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


@given(
    causes=st.lists(CAUSES, max_size=40), restarts=st.integers(0, 4), users=st.integers(0, 4), ports=st.integers(0, 4)
)
def test_no_budget_is_ever_overdrawn(causes: list[Cause], restarts: int, users: int, ports: int) -> None:
    policy = RestartPolicy(restarts=restarts, user_restarts=users, port_retries=ports)
    history: list[PastFailure] = []
    for cause in causes:
        failure = _failed(cause)
        if policy.decide(failure, history, now=0.0).action is Action.FAIL:
            spent = sum(BUDGETS[past.cause] is BUDGETS[cause] for past in history)
            assert spent == policy.allowed(BUDGETS[cause]), "refused although there was some of it left"
            break
        history.append(failure)
    for budget in Budget:
        assert sum(BUDGETS[past.cause] is budget for past in history) <= policy.allowed(budget)
