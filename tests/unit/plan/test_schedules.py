"""The orders of work in a pipeline, and the time that they take."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.plan.schedules import Work, bubble_of, count_in_flight, list_needs, order_stages, split_rows, unroll
from training.plan.timeline import from_marks, measure_pipeline, simulate
from training.plan.timeline_drawing import draw_timeline

schedules = st.sampled_from(["1f1b", "gpipe"])
stages = st.integers(1, 6)
micro_batches = st.integers(1, 12)


def write(order):
    return " ".join(f"{work.phase[0]}{work.micro_batch}" for work in order)


def test_gpipe_goes_forward_first():
    assert [write(order) for order in order_stages("gpipe", 2, 3)] == ["f0 f1 f2 b0 b1 b2"] * 2


def test_1f1b_goes_backward_as_soon_as_it_can():
    assert [write(order) for order in order_stages("1f1b", 3, 4)] == [
        "f0 f1 f2 b0 f3 b1 b2 b3",
        "f0 f1 b0 f2 b1 f3 b2 b3",
        "f0 b0 f1 b1 f2 b2 f3 b3",
    ]


@given(schedules, stages, micro_batches)
def test_every_stage_takes_every_micro_batch_once_each_way_and_in_order(schedule, k, m):
    for stage, order in enumerate(order_stages(schedule, k, m)):
        for phase in ("forward", "backward"):
            assert [work for work in order if work.phase == phase] == [Work(phase, stage, i) for i in range(m)]


@given(schedules, stages, micro_batches)
def test_no_work_comes_before_what_it_needs_or_before_what_its_stage_does_first(schedule, k, m):
    orders = order_stages(schedule, k, m)
    place = {work: index for index, work in enumerate(unroll(orders))}
    assert len(place) == 2 * k * m
    assert all(place[need] < place[work] for work in place for need in list_needs(work, k))
    assert all(place[first] < place[second] for order in orders for first, second in pairwise(order))


def test_orders_that_wait_for_one_another_are_refused():
    forwards = [Work("forward", 0, 0), Work("forward", 0, 1)]
    circle = [(Work("backward", 0, 0), *forwards), (Work("forward", 1, 0), Work("backward", 1, 0))]
    with pytest.raises(ValueError, match="circle"):
        list(unroll(circle))


@given(stages, micro_batches)
def test_1f1b_holds_fewer_micro_batches_than_gpipe(k, m):
    assert [count_in_flight(order) for order in order_stages("gpipe", k, m)] == [m] * k
    assert [count_in_flight(order) for order in order_stages("1f1b", k, m)] == [min(k - i, m) for i in range(k)]


@given(schedules, stages, micro_batches, st.integers(1, 5), st.integers(1, 5))
def test_stages_of_equal_cost_stand_idle_as_long_as_the_formula_says(schedule, k, m, forward, backward):
    timeline = simulate(order_stages(schedule, k, m), [forward] * k, [backward] * k)

    assert timeline.step_s == (m + k - 1) * (forward + backward)
    assert timeline.bubble == pytest.approx(bubble_of(k, m))
    assert [timeline.busy_s(stage) for stage in range(k)] == [m * (forward + backward)] * k


def test_the_dearest_stage_sets_the_pace():
    slow = simulate(order_stages("1f1b", 2, 4), [1, 3], [1, 3])
    assert slow.step_s == 1 + 4 * 6 + 1
    assert slow.idle_s(0) == slow.step_s - 8


@given(st.integers(1, 500), micro_batches)
def test_micro_batches_have_all_rows_and_differ_by_one_at_most(rows, m):
    parts = split_rows(rows, m)
    assert (sum(parts), len(parts)) == (rows, m)
    assert max(parts) - min(parts) <= 1


def test_a_measured_step_begins_at_its_first_mark():
    timeline = from_marks([(Work("forward", 0, 0), 100.5, 101.0), (Work("backward", 0, 0), 101.0, 102.5)], stages=1)
    assert [(span.begin_s, span.end_s) for span in timeline.spans] == [(0.0, 0.5), (0.5, 2.0)]
    assert (timeline.step_s, timeline.bubble) == (2.0, 0.0)


def test_the_picture_has_a_box_for_every_work():
    timeline = simulate(order_stages("1f1b", 2, 4), [1, 1], [2, 2])
    picture = draw_timeline(timeline, "step 3 <1f1b>")
    assert picture.count("<title>") == 16
    assert "step 3 &lt;1f1b&gt;" in picture
    assert "stage 1" in picture
    assert "15000.0 ms, 20% idle" in picture


def test_a_measured_step_is_told_by_stage_beside_the_bubble_of_equal_ones():
    timeline = simulate(order_stages("1f1b", 2, 8), [1, 1], [2, 2])
    told = measure_pipeline(30.0, timeline, 8, [100.0, 200.0])
    assert told["pipeline/step_s"] == 30.0
    assert told["pipeline/bubble"] == pytest.approx(told["pipeline/bubble_if_equal"])
    for stage, peak_mib in enumerate((100.0, 200.0)):
        assert told[f"pipeline/stage_{stage}_busy_s"] == 24
        assert told[f"pipeline/stage_{stage}_idle_s"] == pytest.approx(3)
        assert told[f"pipeline/stage_{stage}_peak_mib"] == peak_mib
