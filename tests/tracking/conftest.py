"""Real MLflow: one store in a SQLite file and one server, made once; each test has an experiment of its own."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from mlflow_server import MlflowServer
from real_run import RealRun

_MODEL = """\
import mlflow

class Doubles(mlflow.pyfunc.PythonModel):
    def predict(self, context, model_input: list[int]) -> list[int]:
        return [2 * number for number in model_input]

mlflow.models.set_model(Doubles())
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.tracking)
    # The server's turn comes last; the sort is stable.
    items.sort(key=lambda item: "[server]" in item.name and item.path.is_relative_to(Path(__file__).parent))


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A working folder that nothing may be written to; what a test does not say, the machine must not say either."""
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    folder = tmp_path_factory.mktemp("nowhere")
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture(scope="session", autouse=True)
def launched_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MlflowServer]:
    """A server that may not answer yet: it comes up (20 s) while the tests on SQLite run."""
    server = MlflowServer(tmp_path_factory.mktemp("server"))
    try:
        server.launch()
        yield server
    finally:
        server.kill()


@pytest.fixture(scope="session")
def server(launched_server: MlflowServer) -> MlflowServer:
    launched_server.wait()
    return launched_server


@pytest.fixture(scope="session")
def sqlite_uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"sqlite:///{tmp_path_factory.mktemp('sqlite')}/mlflow.db"


@pytest.fixture(params=["sqlite", "server"])
def uri(request: pytest.FixtureRequest) -> str:
    """Address of a store: each test that asks for it runs against both."""
    if request.param == "sqlite":
        return str(request.getfixturevalue("sqlite_uri"))
    return str(request.getfixturevalue("server").uri)


@pytest.fixture
def real(uri: str, tmp_path: Path) -> RealRun:
    return RealRun.of(uri, tmp_path)


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model in MLflow's format that doubles what it is given."""
    folder = tmp_path_factory.mktemp("saved")
    (folder / "doubles.py").write_text(_MODEL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import mlflow.pyfunc

        mlflow.pyfunc.save_model(str(folder / "model"), python_model=str(folder / "doubles.py"), pip_requirements=[])
    return folder / "model"
