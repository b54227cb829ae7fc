"""The equivalence law (promise 2): whatever the strategy and the number of replicas, the same global batches train the
same weights and metrics as one process does."""

import numpy as np
import pytest
from teams import ASYNCHRONOUS, DECIDING, MOMENTUM, TEAMS

pytestmark = pytest.mark.engine
#: Promised is 1e-5; measured is 1.2e-7 at most.
TOLERANCE = 1e-5
#: Of a tensor's largest value: optimizers keep squares of gradients, which are small throughout.
RELATIVE_TOLERANCE = 1e-4


PROCESSES = [pytest.param("two", id="multi_worker_mirrored-2"), pytest.param("three", id="multi_worker_mirrored-3")]


@pytest.fixture(params=PROCESSES)
def gang(request):
    """A gang that trains by multi_worker_mirrored."""
    return request.getfixturevalue(request.param)


#: All synchronous strategies, and parameter servers with one worker: updates have an order.
ORDERED = [team for team in TEAMS if isinstance(team, str) and team != ASYNCHRONOUS]


@pytest.fixture(params=[*PROCESSES, *ORDERED])
def several(request, others):
    """A gang of any strategy whose updates have an order."""
    return request.getfixturevalue(request.param) if request.param in ("two", "three") else others(request.param)


@pytest.fixture(params=[PROCESSES[0], *(team for team in ORDERED if team in DECIDING)])
def pair(request, others):
    """One of those whose ranks must decide alike."""
    return request.getfixturevalue(request.param) if request.param == "two" else others(request.param)


def largest_difference(these, those):
    assert these.keys() == those.keys()
    return max(float(np.abs(these[name].astype(np.float64) - those[name]).max()) for name in these)


def largest_relative_difference(these, those):
    """Return the largest difference in a tensor, as a part of the largest value in it."""
    pairs = [(array.astype(np.float64), those[name].astype(np.float64)) for name, array in these.items() if array.size]
    return max(float(np.abs(a - b).max() / max(np.abs(b).max(), 1e-30)) for a, b in pairs)


@pytest.mark.parametrize("name", ["momentum", "adam", "cnn", "user"])
def test_weights_and_optimizer_are_those_of_one_process(one, several, name, law_table):
    """`momentum` and `adam`: 1439 rows, a prime; `user`: a layer and a rate schedule of the user's own, 323 rows."""
    difference = largest_relative_difference(several.newest(name), one.newest(name))
    law_table[str(TEAMS[several.team]), name] = difference
    assert largest_difference(one.newest(name), several.newest(name)) < TOLERANCE
    assert difference < RELATIVE_TOLERANCE


def test_callbacks_decide_alike(one, pair):
    """Early stopping ends all ranks after the same epoch, with the best weights; a lowered rate is so everywhere."""
    alone, together = one.chief.of("early", "epoch"), pair.chief.of("early", "epoch")
    assert len(alone) < 30
    assert [event.step for event in together] == [event.step for event in alone]
    assert pair.chief.result("early")["weights_norm"] == pytest.approx(
        one.chief.result("early")["weights_norm"], rel=1e-5
    )
    for rank in pair.ranks:
        assert rank.text.count("SAW ") == len(alone)
    lowered = [gang.chief.of("early", "step")[-1].metrics["learning_rate"] for gang in (one, pair)]
    assert lowered[0] == pytest.approx(lowered[1], rel=1e-6)
    assert lowered[0] < 0.05


def test_the_rest_of_an_epoch_goes_on_under_any_strategy(two, several):
    """K35: from a checkpoint that another strategy wrote in mid-epoch, to the same end."""
    assert largest_difference(two.newest("momentum"), several.newest("resumed")) < TOLERANCE
    assert several.metrics("resumed")[-1] == pytest.approx(two.metrics("momentum")[-1], rel=1e-5)


@pytest.mark.parametrize("name", ["momentum", "adam", "cnn"])
def test_training_metrics_are_those_of_one_process(one, several, name):
    for alone, together in zip(one.metrics(name), several.metrics(name), strict=True):
        assert together == pytest.approx(alone, rel=1e-5)
        assert {"loss", "accuracy", "val_loss", "val_accuracy"} == together.keys()


def test_metrics_that_are_no_means_are_exact_too(one, several):
    """Neither AUC nor precision is the mean of what two ranks have of it."""
    for alone, together in zip(one.metrics("user"), several.metrics("user"), strict=True):
        assert together == pytest.approx(alone, rel=1e-5)
        assert {"auc", "precision", "val_auc", "val_precision"} <= together.keys()


def test_loss_of_a_step_is_that_of_the_global_batch(one, several):
    alone = {event.step: event.metrics for event in one.chief.of("momentum", "step")}
    together = {event.step: event.metrics for event in several.chief.of("momentum", "step")}
    common = alone.keys() & together.keys()
    assert {1, 23, 24, 46} <= common
    for step in common:
        assert together[step] == pytest.approx(alone[step], rel=1e-5)


def test_all_ranks_report_the_replicas_and_their_threads(gang):
    """K03, K12."""
    for rank in gang.ranks:
        assert rank.of("", "ready")[0].replicas == gang.replicas
        assert rank.told["THREADS"] == [{"intra": 1, "given": 1}]


def test_steps_rise_and_only_the_chief_tells_metrics(gang):
    """K42."""
    for rank in gang.ranks:
        steps = [event.step for event in rank.of("momentum", "step")]
        assert steps == sorted(set(steps))
    for other in gang.ranks[1:]:
        assert other.of("momentum", "epoch") == []
        assert all(event.metrics == {} for event in other.of("momentum", "step"))


def test_real_learning_rate_is_told(one):
    """K29: under a schedule, the rate of each step."""
    rates = [event.metrics["learning_rate"] for event in one.chief.of("user", "step")]
    assert rates == sorted(rates, reverse=True)
    assert len(set(rates)) > 1


def test_learning_rate_is_scaled_and_warmed_up_as_the_spec_says(one, two):
    """K29: nothing by default; linear from the model's own rate to twice it in ten steps; sqrt on top of a schedule."""

    def rates(gang, name):
        return {event.step: event.metrics["learning_rate"] for event in gang.chief.of(name, "step")}

    base = MOMENTUM["learning_rate"]
    linear, warm = rates(two, "linear"), rates(one, "linear")
    assert list(rates(two, "momentum").values()) == pytest.approx([base] * len(rates(two, "momentum")))
    # Told after the step: the rate of the next one.
    for step, rate in linear.items():
        assert rate == pytest.approx(base * (1 + min((step + 1) / 10, 1)), rel=1e-5)
    for step, rate in warm.items():
        assert rate == pytest.approx(base * min((step + 1) / 10, 1), rel=1e-5)
    common = rates(two, "sqrt").keys() & rates(one, "user").keys()
    assert common
    for step in common:
        assert rates(two, "sqrt")[step] == pytest.approx(2**0.5 * rates(one, "user")[step], rel=1e-5)


def test_dropout_trains_on_several_ranks(two):
    """Its masks differ from those of one process, so that no law holds; but it must train."""
    assert two.metrics("dropout")[0]["accuracy"] > 0.2
