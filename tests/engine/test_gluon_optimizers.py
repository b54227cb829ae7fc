"""What MXNet's optimizers, and those of one's own, remember: all of it is saved, or it is refused."""

import pytest
from gluon_tasks import SINGLE
from teams import GLUON_GANGS, GLUON_TEAMS
from test_gluon import newest
from test_laws import largest_difference

pytestmark = pytest.mark.engine
TOLERANCE = 1e-5
TEAMS_OF_ONE = [team for team in GLUON_TEAMS if GLUON_TEAMS[team].strategy != "model_parallel"]
#: All that MXNet 1.9.1 registers.
OPTIMIZERS = [
    *("sgd", "signum", "ftml", "lars", "lbsgd", "lamb", "dcasgd", "nag", "sgld", "ccsgd", "adam", "adagrad", "rmsprop"),
    *("adadelta", "ftrl", "adamax", "nadam", "test", "groupadagrad"),
]
DRAWS = "must leave all weights to one optimizer, since SGLD draws numbers for each copy of the weights. Received: 2"


@pytest.fixture(scope="module")
def found(gluon):
    return gluon.chief.result(f"{SINGLE}/optimizers")


def test_all_optimizers_of_mxnet_are_tried(found):
    assert sorted(found) == sorted(OPTIMIZERS)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_resumed_equals_undisturbed_with_each_optimizer(found, name):
    """K35: LARS compares its rate with the last one; Nadam multiplies a number at each update."""
    assert found[name]["moved"] > 0.001
    assert found[name]["resumed"] == 0


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_two_devices_train_the_weights_of_one_with_each_optimizer(found, name):
    """K32: MXNet has devices share an optimizer, so that weights drifted apart with Nadam and LBSGD."""
    if name == "sgld":
        assert DRAWS in found[name]["refused"]
    else:
        assert found[name]["two"] < TOLERANCE


@pytest.mark.parametrize("team", TEAMS_OF_ONE)
def test_arrays_and_numbers_of_any_type_are_saved(gluon, team):
    """K35: NumPy's arrays, numbers in lists, None that becomes a number."""
    check_remembering(gluon, gluon, team)


@pytest.mark.parametrize("team", GLUON_GANGS)
def test_arrays_and_numbers_of_any_type_are_saved_by_gangs(gluon, gluon_gangs, team):
    """K35, K38: where servers update, too; of workers that do not wait, no two runs are the same."""
    check_remembering(gluon, gluon_gangs(team), team)


def check_remembering(gluon, gang, team):
    undisturbed = newest(gluon, SINGLE, "remembering")
    assert {"optimizer.last", "optimizer.steps", "trainer.1.weight.2.0", "trainer.1.weight.2.4.0"} <= undisturbed.keys()
    assert undisturbed["trainer.1.weight.2.4.0"].dtype == "float16"
    for name in ("remembering", "remembering_resumed"):
        arrays = newest(gang, team, name)
        assert arrays.keys() == undisturbed.keys()
        if team == SINGLE:
            assert largest_difference(undisturbed, arrays) == 0
        elif team != "gluon-dist_async-2":
            assert largest_difference(undisturbed, arrays) < TOLERANCE


def test_state_that_cannot_be_saved_is_refused_before_the_first_step(gluon):
    """K38."""
    failure = gluon.chief.failures[f"{SINGLE}/text"]
    assert failure["error"] == "SpecError"
    assert failure["message"] == (
        "model.entrypoint: Remembering.create_state must return arrays and numbers, None, or lists and tuples of them, "
        "so that they can be saved. Received: a str."
    )
    assert gluon.chief.of(f"{SINGLE}/text", "step") == []


@pytest.mark.parametrize(
    ("name", "says", "steps"),
    [
        ("nadam", "since Nadam counts the updates of all parameters in one number. Received: 2 optimizers.", 0),
        ("updates", "since Remembering counts the updates of all parameters in updates. Received: 2 optimizers.", 5),
    ],
)
def test_optimizer_that_must_see_all_updates_is_refused_where_devices_have_one_each(gluon, name, says, steps):
    """K32: before the first step where it is known, else before the first checkpoint."""
    team = "gluon-model_parallel-2"
    failure = gluon.chief.failures[f"{team}/{name}"]
    assert failure["error"] == "SpecError"
    assert failure["message"].startswith("train.strategy: must leave all weights to one optimizer, ")
    assert says in failure["message"]
    assert len(gluon.chief.of(f"{team}/{name}", "step")) <= steps
    assert gluon.chief.of(f"{team}/{name}", "checkpoint") == []


def test_what_is_remembered_elsewhere_is_refused_before_a_checkpoint_lacks_it(gluon):
    """K35, K38."""
    failure = gluon.chief.failures[f"{SINGLE}/beside"]
    assert failure["error"] == "SpecError"
    assert "Remembering must change nothing but weights, the arrays and numbers that its" in failure["message"]
    assert "Received: seen, a dict, which is another one than at first." in failure["message"]
    assert gluon.chief.of(f"{SINGLE}/beside", "checkpoint") == []
