"""The drawing: a function of the seed, with every kind in it."""

import pytest

from tests.chaos.__main__ import choose_faults, parse_numbers, read_options
from tests.chaos.drawing import CARDS, EVERY_STEPS, LAST, PER_EPOCH, TOTAL_STEPS, draw_faults
from tests.chaos.expectation import expect
from tests.chaos.fault import Kind, Stage
from tests.chaos.injections import INJECTIONS

SEEDS = range(30)


def test_a_seed_draws_the_same_faults_again_and_another_one_others():
    assert draw_faults(7, 40) == draw_faults(7, 40)
    assert draw_faults(7, 40) != draw_faults(8, 40)


def test_a_longer_drawing_begins_with_the_shorter_one():
    """`--only 17` repeats a fault of a drawing, whatever its length."""
    assert draw_faults(7, 100)[:40] == draw_faults(7, 40)
    assert [fault.number for fault in draw_faults(7, 100)] == list(range(1, 101))


@pytest.mark.parametrize("seed", SEEDS)
def test_every_kind_occurs_in_forty(seed):
    assert sum(CARDS.values()) == 40
    assert {fault.kind for fault in draw_faults(seed, 40)} == set(Kind)


def test_every_kind_can_be_done_and_says_what_must_come_out():
    drawn = {fault.kind: fault for fault in draw_faults(7, 40)}

    assert set(INJECTIONS) == set(Kind)
    for kind in Kind:
        expected = expect(drawn[kind])
        assert expected.state in ("succeeded", "failed", "cancelled", "killed")
        assert expected.resumes or expected.state in ("succeeded", "failed")


@pytest.mark.parametrize("seed", SEEDS)
def test_moments_come_while_there_is_something_to_lose_and_something_to_do(seed):
    for fault in draw_faults(seed, 40):
        moments = [moment for moment in (fault.moment, fault.second) if moment is not None]
        for moment in moments:
            assert moment.step < TOTAL_STEPS
            if moment.stage is Stage.STEP:
                assert moment.step > EVERY_STEPS
            if moment.stage is Stage.CHECKPOINT:
                assert moment.step % EVERY_STEPS == 0 or moment.step % PER_EPOCH == 0
        assert fault.moment.step <= LAST
        assert fault.rank in (0, 1)


def test_all_stages_and_both_ranks_are_killed_in_some_seeds():
    killed = [fault for seed in SEEDS for fault in draw_faults(seed, 40) if fault.kind is Kind.RANK_KILLED]

    assert {fault.moment.stage for fault in killed} == set(Stage)
    assert {fault.rank for fault in killed} == {0, 1}


def test_some_of_a_drawing_can_be_chosen():
    of_numbers = choose_faults(read_options(["--only", "3,8-10"]))
    of_kinds = choose_faults(read_options(["--kinds", "rank_killed,STOPPED"]))

    assert [fault.number for fault in of_numbers] == [3, 8, 9, 10]
    assert of_numbers == [draw_faults(7, 40)[number - 1] for number in (3, 8, 9, 10)]
    assert {fault.kind for fault in of_kinds} == {Kind.RANK_KILLED, Kind.STOPPED}
    assert parse_numbers("4") == {4}
