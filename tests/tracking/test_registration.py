from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from mlflow_server import MlflowServer
from real_run import RealRun, close, saved

from training import settings
from training.errors import SpecError
from training.run.event import Result, parse_line
from training.run.rank import RankContext
from training.tracking.registry import register_model, register_version
from training.tracking.tasks import check_tracking, close_tracking

ENGINE_PYTHON = settings.read_engines_dir() / "tensorflow" / "bin" / "python"


def train(real: RealRun, model: Path) -> None:
    tracker = real.tracker()
    tracker.open()
    tracker.handle(saved(model))
    assert close(tracker).closed


def results(capfd: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    events = [parse_line(line)[1] for line in capfd.readouterr().out.split("\n")]
    return [event.values for event in events if isinstance(event, Result)]


def test_the_registry_says_which_alias_it_does_not_take(real: RealRun, model: Path) -> None:
    train(real, model)
    with pytest.raises(SpecError, match=r"register.alias: must be a name that the registry takes. Received: 'v1'"):
        register_version(real.ref, real.plan.experiment, "v1", {})
    assert settings.TRACKING_URI not in os.environ


def test_the_tasks_tell_what_they_did(
    real: RealRun, model: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(settings.JOB_DIR, str(real.run.job("register_model").path))
    payload: dict[str, object] = {"tracking_uri": real.plan.tracking_uri, "experiment": real.plan.experiment}
    check_tracking(RankContext(rank=0, world_size=1, payload=payload))
    assert results(capfd) == [{}]
    train(real, model)
    # The step may have read the run's reference before the model was there.
    early = real.ref.model_copy(update={"model_uri": None}).model_dump(mode="json")
    payload = {"model": real.plan.experiment, "alias": None, "tracking": early, "tags": {"dag_id": "digits"}}
    register_model(RankContext(rank=0, world_size=1, payload=payload))
    name = real.plan.experiment
    assert results(capfd) == [{"model": name, "version": "1", "alias": None, "model_uri": f"models:/{name}/1"}]
    real.client.update_run(real.ref.run_id, status="RUNNING")
    payload = {"run": str(real.run.path), "state": "cancelled"}
    close_tracking(RankContext(rank=0, world_size=1, payload=payload))
    (closed,) = results(capfd)
    assert closed["notes"]
    assert real.read().info.status == "KILLED"


_SAVE = """
import sys, numpy, pathlib, mlflow.pyfunc
from mlflow.models import ModelSignature
from mlflow.types import Schema, TensorSpec
code = pathlib.Path(sys.argv[1]).parent / "summing.py"
code.write_text(
    "import mlflow.pyfunc\\n"
    "from mlflow.models import set_model\\n"
    "class Sum(mlflow.pyfunc.PythonModel):\\n"
    "    def predict(self, context, model_input, params=None):\\n"
    "        return model_input.sum(axis=1)\\n"
    "set_model(Sum())\\n"
)
inputs, outputs = (Schema([TensorSpec(numpy.dtype("float32"), shape)]) for shape in ((-1, 3), (-1,)))
mlflow.pyfunc.save_model(
    sys.argv[1], python_model=str(code), signature=ModelSignature(inputs, outputs), pip_requirements=["numpy"]
)
"""
_LOAD = """
import sys, json, numpy, mlflow.pyfunc
answers = []
for uri in sys.argv[1:]:
    model = mlflow.pyfunc.load_model(uri)
    assert model.metadata.run_id and model.metadata.model_id and model.metadata.signature, model.metadata
    answers.append(model.predict(numpy.full((1, 3), 2, "float32")).tolist())
print(json.dumps(answers))
"""


@pytest.mark.engine
def test_the_model_predicts_in_the_engine_s_environment(server: MlflowServer, tmp_path: Path) -> None:
    """Saved in the engine's environment, logged from here, loaded there again: by model, version, alias and run."""
    if not ENGINE_PYTHON.exists():
        pytest.skip(f"there is no {ENGINE_PYTHON}")
    real = RealRun.of(server.uri, tmp_path)
    real.run.path.mkdir(parents=True)
    _engine(_SAVE, str(real.run.model))
    train(real, real.run.model)
    name = real.plan.experiment
    version = register_version(real.ref, name, "champion", {})
    uris = [str(real.ref.model_uri), version.model_uri, f"models:/{name}@champion", f"runs:/{real.ref.run_id}/model"]
    answer = _engine(_LOAD, *uris, MLFLOW_TRACKING_URI=server.uri)
    assert json.loads(answer.splitlines()[-1]) == [[6.0]] * 4


def _engine(code: str, *arguments: str, **env: str) -> str:
    command = [str(ENGINE_PYTHON), "-c", code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | env, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
