"""Model files, the saved model, its evaluation, and the repairs of Keras."""

import json

import pytest
import yaml

pytestmark = pytest.mark.engine


@pytest.mark.parametrize(
    ("name", "strategy"),
    [
        ("reduce_per_replica", "multi_worker_mirrored"),
        ("symbolic_build", "multi_worker_mirrored"),
        ("summed_gradients", "multi_worker_mirrored"),
        ("loss_scale", "central_storage"),
    ],
)
def test_shims_are_still_needed(gang_by, name, strategy):
    """When this fails, Keras has repaired it: delete the shim of that name; `loss_scale` is in `central_variables`."""
    for rank in gang_by(strategy).ranks:
        answers = {answer["name"]: answer["answer"] for answer in rank.told["UPSTREAM"]}
        assert answers[name].startswith(("ValueError", "RuntimeError"))


def test_functions_on_servers_find_what_was_written_before(others):
    """K35: else metrics of an epoch may begin with the sums of the one before; without our waiting they do."""
    answers = {answer["name"]: answer["answer"] for answer in others("pipeline-3").chief.told["UPSTREAM"]}
    assert answers["await_them"] == "works"
    assert answers["overtake_writes"] == "ValueError: a write was overtaken", "upstream: delete shims/awaited_writes.py"


@pytest.mark.parametrize(
    ("name", "error", "says"),
    [
        ("no_file", "SpecError", "Did you mean 'returns_nothing.py'?"),
        ("no_function", "SpecError", "must define build_model."),
        ("nearly_function", "SpecError", "Did you mean 'build_modle'?"),
        ("returns_nothing", "SpecError", "Received: nothing. Does it end in `return model`?"),
        ("not_compiled", "SpecError", "a model that is not compiled. Call model.compile"),
        ("legacy", "SpecError", "a model of tf_keras, the legacy Keras 2. Import keras"),  # K09
        (
            "unregistered",
            "WorkerError",
            "Own models, layers and losses need @keras.saving.register_keras_serializable()",
        ),
        ("raises", "KeyError", "width"),
        ("wrong_shape", "WorkerError", "must take rows of shape [64] (float32)"),
        (
            "unknown_parameter",
            "SpecError",
            "model.params.unit: must be a parameter of build_model(units=3, *, rate=1). "
            "Received: unit. Did you mean 'units'?",
        ),
    ],
)
def test_model_file_that_does_not_do(one, name, error, says):
    """K09, K17: no retry can help, and the message says what would."""
    failure = one.chief.failures[name]
    assert failure["error"] == error
    assert says in failure["message"]
    assert one.metrics(name) == []  # said before any training


def test_without_held_out_rows_nothing_is_evaluated(one):
    assert one.chief.result("none_held_out") == {"metrics": {}, "rows": 0}
    assert "No rows are held out" in one.chief.text


def test_accumulating_optimizer_is_refused_where_keras_cannot_accumulate(one, two, apart):
    """Keras ends there with "merge_call called while defining a new graph"."""
    assert one.metrics("accumulating")
    for gang in (two, apart):
        failure = gang.chief.failures["accumulating"]
        assert failure["error"] == "SpecError"
        assert (
            "Received: an optimizer with gradient_accumulation_steps=2. Use the strategy single" in failure["message"]
        )


def test_evaluation_equals_the_validation_of_the_last_epoch(one, two):
    """By a process of its own, of what two ranks trained; also AUC."""
    told = one.chief.of("reached", "result")[0].values
    last = two.metrics("user")[-1]
    assert told["rows"] == 81
    assert {f"val_{name}": value for name, value in told["metrics"].items()} == pytest.approx(
        {name: value for name, value in last.items() if name.startswith("val_")}, rel=1e-6
    )
    assert "reached" not in one.chief.failures


def test_what_is_not_reached_is_named(one):
    failure = one.chief.failures["not_reached"]
    assert failure["error"] == "EvaluationError"
    assert "auc must be at least 0.9999. Received: 0." in failure["message"]
    assert "loss must be at most 0.01. Received: " in failure["message"]
    assert "on 81 held-out rows" in failure["message"]


def test_required_metric_that_does_not_exist(one):
    """A metric that was not computed is never reported."""
    failure = one.chief.failures["unknown_metric"]
    assert failure["error"] == "SpecError"
    assert "evaluate.require.acu" in failure["message"]
    assert "Did you mean 'auc'?" in failure["message"]


def test_result_tells_what_was_trained(one, two):
    alone, together = one.chief.result("momentum"), two.chief.result("momentum")
    assert (alone["steps"], alone["epochs"], alone["parameters"]) == (46, 2, 64 * 128 + 128 + 128 * 10 + 10)
    assert together["weights_norm"] == pytest.approx(alone["weights_norm"], rel=1e-6)
    assert len(alone["weights_sha256"]) == 64
    assert alone["metrics"] == one.metrics("momentum")[-1]
    assert [rank.of("momentum", "result") for rank in two.ranks[1:]] == [[]]


def test_saved_model_loads_in_a_process_that_knows_nothing_of_it(later, site):
    """Promise 6: the user's own layer goes along; what it takes and needs is written down."""
    assert later.chief.result("evaluate_multi_worker_mirrored")["rows"] == 81
    folder = site.model(2, "user")
    requirements = (folder / "requirements.txt").read_text()
    assert "keras==3" in requirements
    assert "tensorflow-cpu==" in requirements
    signature = yaml.safe_load((folder / "MLmodel").read_text())["signature"]
    assert json.loads(signature["inputs"])[0]["tensor-spec"] == {"dtype": "float32", "shape": [-1, 12]}
    assert json.loads(signature["outputs"])[0]["tensor-spec"] == {"dtype": "float32", "shape": [-1, 1]}
