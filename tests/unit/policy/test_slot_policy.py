"""Who may have slots: all or nothing, first come, first served, never more than there are (K13)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from training.policy.slots import SlotAction, SlotClaim, SlotPolicy


def _claim(ticket: int, wanted: int, *slots: int) -> SlotClaim:
    return SlotClaim(job_id=f"run-{ticket}/train", wanted=wanted, slots=slots, ticket=ticket, since=float(ticket))


def _give(claims: Sequence[SlotClaim], ticket: int, slots: tuple[int, ...]) -> list[SlotClaim]:
    return [replace(claim, slots=slots) if claim.ticket == ticket else claim for claim in claims]


def test_two_that_each_need_all_are_served_one_after_the_other() -> None:
    policy = SlotPolicy(total=2)
    first = _claim(1, 2)
    assert policy.decide([first, _claim(2, 2)], 1).slots == (0, 1)
    holding = _claim(1, 2, 0, 1)
    waiting = policy.decide([holding, _claim(2, 2)], 2)
    assert (waiting.action, waiting.slots, waiting.holders) == (SlotAction.WAIT, (), (holding,))
    assert policy.decide([_claim(2, 2)], 2).slots == (0, 1)


def test_who_wants_more_than_there_are_is_refused_though_all_are_taken() -> None:
    decision = SlotPolicy(total=3).decide([_claim(1, 3, 0, 1, 2), _claim(2, 4)], 2)
    assert decision.action is SlotAction.REFUSE


def test_a_small_claim_does_not_overtake_a_large_one() -> None:
    """Else a stream of small ones would keep the large one waiting for ever."""
    claims = [_claim(1, 1, 0), _claim(2, 3), _claim(3, 1)]
    decision = SlotPolicy(total=3).decide(claims, 3)
    assert decision.action is SlotAction.WAIT
    assert [claim.ticket for claim in decision.ahead] == [2]
    assert SlotPolicy(total=3).decide(claims[1:], 2).slots == (0, 1, 2)


def test_asking_again_changes_nothing_for_who_holds() -> None:
    assert SlotPolicy(total=2).decide([_claim(4, 2, 1, 3)], 4).slots == (1, 3)


class Machine(RuleBasedStateMachine):
    """Jobs that come, look and leave in any order; those that look were told one total or another."""

    def __init__(self) -> None:
        super().__init__()
        self.claims: list[SlotClaim] = []
        self.tickets = 0
        self.largest = 0

    @rule(wanted=st.integers(1, 6))
    def come(self, wanted: int) -> None:
        self.tickets += 1
        self.claims.append(_claim(self.tickets, wanted))

    @precondition(lambda self: self.claims)
    @rule(data=st.data(), total=st.integers(1, 6))
    def look(self, data: st.DataObject, total: int) -> None:
        claim = data.draw(st.sampled_from(self.claims))
        held = {slot for other in self.claims for slot in other.slots}
        waiting = [other.ticket for other in self.claims if not other.slots]
        decision = SlotPolicy(total=total).decide(self.claims, claim.ticket)
        if claim.slots:
            assert decision.slots == claim.slots
        elif decision.action is SlotAction.TAKE:
            self.largest = max(self.largest, total)
            assert len(decision.slots) == claim.wanted, "all or nothing"
            assert held.isdisjoint(decision.slots)
            assert len(held) + claim.wanted <= total
            assert max(decision.slots) < total
            assert claim.ticket == min(waiting), "the head of the queue is served next"
            self.claims = _give(self.claims, claim.ticket, decision.slots)
        elif decision.action is SlotAction.REFUSE:
            assert claim.wanted > total
            self.claims.remove(claim)
        else:
            assert decision.slots == ()
            assert claim.ticket > min(waiting) or len(held) + claim.wanted > total, "nobody waits without a reason"

    @precondition(lambda self: self.claims)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        self.claims.remove(data.draw(st.sampled_from(self.claims)))

    @invariant()
    def no_slot_is_given_twice_and_never_more_than_there_are(self) -> None:
        held = [slot for claim in self.claims for slot in claim.slots]
        assert len(held) == len(set(held)) <= self.largest
        assert all(len(claim.slots) in (0, claim.wanted) for claim in self.claims)


TestMachine = Machine.TestCase


@given(st.data())
def test_all_are_served_in_the_order_in_which_they_came(data: st.DataObject) -> None:
    """However they look and whoever leaves first: no job waits for ever, none holds a part."""
    total = data.draw(st.integers(1, 5))
    wanted = data.draw(st.lists(st.integers(1, total), min_size=1, max_size=8))
    claims = [_claim(ticket, size) for ticket, size in enumerate(wanted)]
    served: list[int] = []
    while claims:
        for claim in data.draw(st.permutations(claims)):
            decision = SlotPolicy(total=total).decide(claims, claim.ticket)
            if decision.action is SlotAction.TAKE and not claim.slots:
                served.append(claim.ticket)
                claims = _give(claims, claim.ticket, decision.slots)
        holding = [claim for claim in claims if claim.slots]
        assert holding, "somebody can always work"
        claims.remove(data.draw(st.sampled_from(holding)))
    assert served == list(range(len(wanted)))
