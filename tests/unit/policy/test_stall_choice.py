"""Who is to blame when everybody is silent."""

from __future__ import annotations

from training.policy.stall import RankSign, choose_stalled


def test_nobody_is_blamed_while_all_give_signs() -> None:
    assert choose_stalled([RankSign(rank=0, at=50.0), RankSign(rank=1, at=41.0)], now=100.0, timeout_s=60.0) is None


def test_a_silent_rank_is_blamed_while_the_others_go_on() -> None:
    found = choose_stalled([RankSign(rank=0, at=99.0, step=3), RankSign(rank=1, at=10.0, step=9)], 100.0, 60.0)
    assert found is not None
    assert found.rank == 1


def test_a_stopped_rank_is_blamed_before_one_that_is_behind() -> None:
    signs = [RankSign(rank=0, at=1.0, step=3), RankSign(rank=1, at=5.0, step=9, stopped=True)]
    found = choose_stalled(signs, 100.0, 60.0)
    assert found is not None
    assert found.rank == 1


def test_the_one_silent_longest_is_blamed_among_equals() -> None:
    found = choose_stalled([RankSign(rank=0, at=9.0, step=3), RankSign(rank=1, at=5.0, step=3)], 100.0, 60.0)
    assert found is not None
    assert found.rank == 1
