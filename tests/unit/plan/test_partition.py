"""Where a model is cut into stages (K31), and what the stages will cost."""

from itertools import accumulate, combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.errors import SpecError
from training.plan.partition import LayerFacts, balance, choose_partition, find_cuts, list_ranges
from training.plan.pipeline_prediction import predict_pipeline


def chain(*costs, **facts):
    return [LayerFacts(name=f"layer_{i}", inputs=(i - 1,), cost=cost, **facts) for i, cost in enumerate(costs)]


def residual():
    """stem, then a block of two layers whose input is added to its output, then a head."""
    edges = {"stem": (-1,), "left": (0,), "right": (1,), "add": (0, 2), "head": (3,)}
    return [LayerFacts(name=name, inputs=inputs, cost=1.0) for name, inputs in edges.items()]


def test_a_row_of_layers_can_be_cut_anywhere():
    assert find_cuts(chain(1, 1, 1, 1)) == (1, 2, 3)


def test_a_residual_block_stays_whole():
    assert find_cuts(residual()) == (1, 4)
    assert choose_partition(residual(), 2) == (1, 4)


@given(st.lists(st.integers(0, 20), min_size=1, max_size=8), st.data())
def test_no_other_partition_has_a_cheaper_dearest_stage(costs, data):
    stages = data.draw(st.integers(1, len(costs)))
    layers = chain(*costs)
    cuts = find_cuts(layers)

    def dearest(partition):
        return max(sum(costs[i] for i in numbers) for numbers in list_ranges(partition))

    every = [tuple(b - a for a, b in pairwise([0, *chosen, len(costs)])) for chosen in combinations(cuts, stages - 1)]
    found = balance(layers, cuts, stages)
    assert found in every
    assert dearest(found) == min(map(dearest, every))


def test_costs_are_balanced_not_numbers_of_layers():
    assert choose_partition(chain(1, 1, 1, 1, 4), 2) == (4, 1)
    assert choose_partition(chain(0, 4, 0, 4, 0), 2) in [(2, 3), (3, 2)]


def test_a_partition_of_the_users_own_is_taken():
    assert choose_partition(chain(1, 1, 1, 1, 1), 2, [2, 3]) == (2, 3)
    assert list(accumulate(len(numbers) for numbers in list_ranges([2, 3]))) == [2, 5]


def refusal(*args):
    with pytest.raises(SpecError) as caught:
        choose_partition(*args)
    return str(caught.value)


def test_a_partition_that_does_not_add_up_is_refused_with_the_layers():
    said = refusal(chain(1, 1, 1), 2, [2, 2])
    assert "train.pipeline.partition: must add up to the 3 layers of the model. Received: [2, 2], which is 4." in said
    assert "layer_0, layer_1, layer_2" in said


def test_a_cut_through_a_residual_block_is_refused_with_the_layer_that_prevents_it():
    said = refusal(residual(), 2, [2, 3])
    assert "cuts behind left, though add also takes what comes from before it." in said
    assert "It can be cut behind: stem, add." in said


def test_more_stages_than_the_model_has_parts_are_refused_with_the_layer_that_prevents_it():
    said = refusal(residual(), 4)
    assert "train.pipeline.stages: must be at most 3, since the model can be cut behind stem, add only" in said
    assert "add takes more than the output of left" in said
    assert "must be at most 1, since the model can be cut nowhere" in refusal(chain(1), 2)


def test_a_prediction_tells_time_memory_and_traffic():
    layers = chain(10, 10, 10, 10, parameters=100, output_numbers=8)
    told = {
        name: predict_pipeline(layers, (2, 2), schedule=name, micro_batches=8, batch_size=20)
        for name in ("1f1b", "gpipe")
    }
    for prediction in told.values():
        assert prediction.relative_step == pytest.approx(9 / 8 / 2)
        assert prediction.bubble == pytest.approx(1 / 9)
        assert [stage.parameters for stage in prediction.stages] == [200, 200]
        assert [stage.cost_share for stage in prediction.stages] == [0.5, 0.5]
        assert [stage.sent_bytes for stage in prediction.stages] == [20 * 8 * 4, 20 * 8 * 4]
    # Micro-batches of 3 rows; stage 1 also keeps what it was given.
    assert [stage.in_flight for stage in told["1f1b"].stages] == [2, 1]
    assert [stage.activation_bytes for stage in told["1f1b"].stages] == [2 * 3 * 16 * 4, 1 * 3 * 24 * 4]
    assert [stage.activation_bytes for stage in told["gpipe"].stages] == [8 * 3 * 16 * 4, 8 * 3 * 24 * 4]
    assert told["1f1b"].stages[1].layers == ("layer_2", "layer_3")
