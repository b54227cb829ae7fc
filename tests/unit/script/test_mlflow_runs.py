"""Which MLflow run calls of user code reach, by a stand-in of the few functions of MLflow that they use (K39)."""

import os
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from training.run.rank import RankContext
from training.script.mlflow_runs import keep_model_file_to_one_run, keep_script_to_one_run


@dataclass
class Recorded:
    """MLflow as far as it is replaced: says which runs were started, and how."""

    started: list = field(default_factory=list)
    active: list = field(default_factory=list)
    made: int = 0
    addresses: list = field(default_factory=list)

    def module(self):
        def start_run(run_id=None, experiment_id=None, run_name=None, nested=False):
            wanted = run_id or os.environ.pop("MLFLOW_RUN_ID", None)
            self.made += wanted is None
            self.active.append(wanted or f"new-{self.made}")
            self.started.append((self.active[-1], experiment_id, run_name))

        set_tracking_uri = self.addresses.append

        def set_experiment(name):
            raise AssertionError(name)

        functions = {"start_run": start_run, "set_experiment": set_experiment, "set_tracking_uri": set_tracking_uri}
        run = SimpleNamespace(info=SimpleNamespace(experiment_id="7"))
        experiment = SimpleNamespace(name="the pipeline's")
        client = SimpleNamespace(get_run=lambda _: run, get_experiment={"7": experiment}.__getitem__)
        utils = SimpleNamespace(**functions)
        return SimpleNamespace(
            **functions,
            active_run=lambda: self.active[-1] if self.active else None,
            end_run=lambda: self.active.pop(),
            tracking=SimpleNamespace(
                **functions, fluent=SimpleNamespace(**functions), _tracking_service=SimpleNamespace(utils=utils)
            ),
            MlflowClient=lambda: client,
        )


@pytest.fixture
def recorded(monkeypatch, tmp_path):
    for name in ("MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD", "MLFLOW_EXPERIMENT_ID", "MLFLOW_REGISTRY_URI"):
        monkeypatch.delenv(name, raising=False)
    for name in ("MLFLOW_DISABLE_TELEMETRY", "DO_NOT_TRACK", "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT"):
        monkeypatch.setenv(name, "true")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://ada:s3cr3t@server:5000")
    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", "exp")
    monkeypatch.setenv("MLFLOW_RUN_ID", "ours")
    return Recorded()


def imported(recorded, rank=0):
    """Return MLflow as a script finds it that imports it."""
    module = recorded.module()
    keep_script_to_one_run(RankContext(rank=rank, world_size=2, payload={"relayed": False}))["mlflow"](module)
    return module


def test_each_run_at_the_top_is_the_trainings(recorded):
    mlflow = imported(recorded)

    for start in (mlflow.start_run, mlflow.tracking.fluent.start_run):
        start(experiment_id="9", run_name="mine")
        mlflow.end_run()
    mlflow.start_run(nested=True)  # in nothing

    assert recorded.started == [("ours", None, "mine"), ("ours", None, "mine"), ("ours", None, None)]
    assert os.environ["MLFLOW_RUN_ID"] == "ours"  # for processes that the script starts


def test_runs_inside_of_it_and_runs_of_an_id_are_the_scripts_own(recorded):
    mlflow = imported(recorded)

    mlflow.start_run()
    mlflow.start_run(nested=True)
    mlflow.end_run()
    mlflow.end_run()
    mlflow.start_run("another")

    assert [started for started, _, _ in recorded.started] == ["ours", "new-1", "another"]


def test_another_experiment_or_server_is_said_to_be_ignored(recorded, capsys):
    mlflow = imported(recorded)

    mlflow.set_tracking_uri("http://bob:pass@elsewhere")
    mlflow.tracking.set_tracking_uri("elsewhere")
    mlflow.set_tracking_uri("http://server:5000")
    assert mlflow.set_experiment("my experiment").name == "the pipeline's"

    said = capsys.readouterr().out
    assert "Ignored: http://bob@elsewhere." in said
    assert "server" not in said
    assert recorded.addresses == ["http://server:5000"]
    assert "mlflow.set_experiment: the run stays in the pipeline's experiment, the pipeline's." in said


@pytest.mark.parametrize("rank", [0, 1])
def test_an_address_that_the_script_has_put_into_the_environment_is_not_gone_to(recorded, monkeypatch, rank):
    module = recorded.module()
    action = keep_script_to_one_run(RankContext(rank=rank, world_size=2, payload={"relayed": False}))["mlflow"]
    ours = os.environ["MLFLOW_TRACKING_URI"]
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://elsewhere")  # by the script, before it imports MLflow

    action(module)

    assert recorded.addresses == [ours]  # which MLflow puts before the variable


def test_rank_0_finds_the_server_with_the_password_where_mlflow_reads_it(recorded):
    """K18."""
    imported(recorded)

    assert os.environ["MLFLOW_TRACKING_URI"] == "http://server:5000"
    assert os.environ["MLFLOW_TRACKING_PASSWORD"] == "s3cr3t"


def test_another_rank_logs_to_the_temporary_folder(recorded, tmp_path, capsys):
    mlflow = imported(recorded, rank=1)

    mlflow.set_tracking_uri("http://elsewhere")
    mlflow.start_run()

    assert recorded.started == [("new-1", None, None)]
    assert os.environ["MLFLOW_TRACKING_URI"] == (tmp_path / "mlflow-of-rank-1").as_uri()
    assert "MLFLOW_EXPERIMENT_NAME" not in os.environ
    assert "Ignored" in capsys.readouterr().out


def test_without_a_run_rank_0_says_that_nothing_is_kept(recorded, monkeypatch, tmp_path, capsys):
    """A run that it made would be a second one, once the supervisor reaches the server."""
    monkeypatch.delenv("MLFLOW_RUN_ID")

    mlflow = imported(recorded)
    mlflow.start_run()
    mlflow.start_run()

    assert os.environ["MLFLOW_TRACKING_URI"].startswith(tmp_path.as_uri())
    assert capsys.readouterr().out.count("is not kept: MLflow's server did not answer") == 1


@pytest.mark.parametrize(
    ("payload", "run", "reason"),
    [
        ({"task": "train", "logs_to_mlflow": True, "relayed": False}, "ours", None),
        ({"task": "train", "logs_to_mlflow": False}, "new-1", "the model file itself must import mlflow"),
        ({"task": "evaluate"}, "new-1", "user code logs to MLflow in the step train only"),
    ],
)
def test_a_model_file_joins_the_run_where_it_can(recorded, capsys, payload, run, reason):
    """A saved model's code is run again where the model is loaded: that must not log once more."""
    module = recorded.module()
    keep_model_file_to_one_run(RankContext(rank=0, world_size=1, payload=payload))["mlflow"](module)
    module.start_run()

    assert [started for started, _, _ in recorded.started] == [run]
    said = capsys.readouterr().out
    assert said == (f"mlflow.start_run: what the code logs to MLflow is not kept: {reason}.\n" if reason else "")


def test_autologging_of_a_model_file_does_nothing_and_says_so(recorded, capsys):
    flavor = SimpleNamespace(autolog=None)
    actions = keep_model_file_to_one_run(RankContext(rank=1, world_size=2, payload={"task": "train"}))
    actions["mlflow.tensorflow"](flavor)

    flavor.autolog(log_models=False)

    assert capsys.readouterr().out == "mlflow.tensorflow.autolog: nothing to do, Ganger logs this training.\n"
    assert "mlflow.keras" in actions
